#include <algorithm>
#include <utility>

#include "base/letter_case.h"
#include "models/metrics/metric_state_internal.h"

namespace sluice::models {
namespace {

struct Spelling {
  std::string_view folded;  // lower case, without '_', '-' and blanks
  std::string_view name;
};

// TensorFlow's, scikit-learn's and XGBoost's names, as in SQLFlow.
constexpr Spelling kSpellings[] = {
    {"accuracy", "accuracy"},
    {"accuracyscore", "accuracy"},
    {"binaryaccuracy", "accuracy"},
    {"categoricalaccuracy", "accuracy"},
    {"sparsecategoricalaccuracy", "accuracy"},
    {"auc", "auc"},
    {"rocauc", "auc"},
    {"rocaucscore", "auc"},
    {"prauc", "pr_auc"},
    {"aucpr", "pr_auc"},
    {"averageprecision", "pr_auc"},
    {"averageprecisionscore", "pr_auc"},
    {"logloss", "log_loss"},
    {"mlogloss", "log_loss"},
    {"binarycrossentropy", "log_loss"},
    {"categoricalcrossentropy", "log_loss"},
    {"sparsecategoricalcrossentropy", "log_loss"},
    {"precision", "precision"},
    {"precisionscore", "precision"},
    {"recall", "recall"},
    {"recallscore", "recall"},
    {"f1", "f1"},
    {"f1score", "f1"},
    {"calibration", "calibration"},
    {"truepositives", "true_positives"},
    {"falsepositives", "false_positives"},
    {"truenegatives", "true_negatives"},
    {"falsenegatives", "false_negatives"},
    {"bestf1", "best_f1"},
    {"bestf1threshold", "best_f1_threshold"},
    {"balancedaccuracy", "balanced_accuracy"},
    {"balancedaccuracyscore", "balanced_accuracy"},
    {"brier", "brier_score"},
    {"brierscore", "brier_score"},
    {"brierscoreloss", "brier_score"},
    {"cohenkappa", "cohen_kappa"},
    {"cohenkappascore", "cohen_kappa"},
    {"zerooneloss", "zero_one_loss"},
    {"hammingloss", "zero_one_loss"},
    {"error", "zero_one_loss"},
    {"merror", "zero_one_loss"},
    {"rmse", "rmse"},
    {"rootmeansquarederror", "rmse"},
    {"mae", "mae"},
    {"meanabsoluteerror", "mae"},
    {"mse", "mse"},
    {"meansquarederror", "mse"},
    {"mape", "mape"},
    {"meanabsolutepercentageerror", "mape"},
    {"r2", "r2"},
    {"r2score", "r2"},
    {"explainedvariance", "explained_variance"},
    {"explainedvariancescore", "explained_variance"},
    {"ndcg", "ndcg"},
    {"ndcgscore", "ndcg"},
    {"pinball", "pinball_loss"},
    {"pinballloss", "pinball_loss"},
    {"meanpinballloss", "pinball_loss"},
    {"quantileloss", "pinball_loss"},
    {"ownloss", "own_loss"},
};

constexpr std::string_view kLowerIsBetter[] = {"log_loss",
                                               "rmse",
                                               "mae",
                                               "mse",
                                               "mape",
                                               "brier_score",
                                               "zero_one_loss",
                                               "false_positives",
                                               "false_negatives",
                                               "pinball_loss",
                                               "own_loss"};

}  // namespace

std::string Metrics::CanonicalName(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c != '_' && c != '-' && c != ' ') {
      folded.push_back(LowerAscii(c));
    }
  }
  for (const Spelling& spelling : kSpellings) {
    if (spelling.folded == folded) {
      return std::string(spelling.name);
    }
  }
  std::string lower = LowerAscii(name);
  return lower.starts_with(std::string(kCoverage) + "q") ? lower : "";
}

std::vector<std::string> Metrics::Names(Task task) {
  switch (task) {
    case Task::kBinary:
      return {"auc",
              "pr_auc",
              "log_loss",
              "accuracy",
              "precision",
              "recall",
              "f1",
              "calibration",
              "true_positives",
              "false_positives",
              "true_negatives",
              "false_negatives",
              "balanced_accuracy",
              "brier_score",
              "cohen_kappa",
              "zero_one_loss",
              "best_f1",
              "best_f1_threshold"};
    case Task::kMulticlass:
      return {"accuracy", "log_loss",          "precision",   "recall",       "f1",
              "auc",      "balanced_accuracy", "cohen_kappa", "zero_one_loss"};
    case Task::kRegression:
      return {"rmse", "mae", "r2", "mse", "mape", "explained_variance"};
    case Task::kRanking:
      return {"ndcg"};
    case Task::kQuantiles:
      return {"pinball_loss"};
  }
  return {};
}

bool Metrics::HigherIsBetter(std::string_view canonical_name) {
  return std::find(std::begin(kLowerIsBetter), std::end(kLowerIsBetter), canonical_name) ==
         std::end(kLowerIsBetter);
}

}  // namespace sluice::models
