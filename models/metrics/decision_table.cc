#include "models/metrics/decision_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/metrics/metric_state_internal.h"

namespace sluice::models {
namespace {

// For a rare class, the interesting thresholds are below one half.
constexpr double kThresholds[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9};

std::string NameAt(std::string_view prefix, double threshold) {
  return fmt::format("{}{}", prefix, threshold);
}

std::optional<double> Find(const std::vector<std::pair<std::string, double>>& metrics,
                           std::string_view name) {
  for (const auto& [known, value] : metrics) {
    if (known == name) {
      return value;
    }
  }
  return std::nullopt;
}

// Whether it is a count for a decision table.
bool InTable(std::string_view name) {
  const std::vector<std::string> names = DecisionMetrics();
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

double Decision::precision() const {
  const double said = true_positives + false_positives;
  return said > 0 ? true_positives / said : 0;
}

double Decision::recall() const {
  const double there = true_positives + false_negatives;
  return there > 0 ? true_positives / there : 0;
}

double Decision::f1() const {
  const double both = 2 * true_positives + false_positives + false_negatives;
  return both > 0 ? 2 * true_positives / both : 0;
}

double Decision::taken() const {
  const double all = true_positives + false_positives + true_negatives + false_negatives;
  return all > 0 ? (true_positives + false_positives) / all : 0;
}

std::optional<double> Decision::Value(std::string_view name) const {
  const double positives = true_positives + false_negatives;
  const double negatives = true_negatives + false_positives;
  const double all = positives + negatives;
  const double right = all > 0 ? (true_positives + true_negatives) / all : 0;
  if (name == "accuracy" || name == "zero_one_loss") {
    return name == "accuracy" ? right : 1 - right;
  }
  if (name == "balanced_accuracy") {
    const double specificity = negatives > 0 ? true_negatives / negatives : recall();
    return positives > 0 ? (recall() + specificity) / 2 : specificity;
  }
  if (name == "cohen_kappa") {
    const double by_chance =
        taken() * positives / all + (1 - taken()) * negatives / all;  // of being right
    return by_chance < 1 ? (right - by_chance) / (1 - by_chance) : kNotANumber;
  }
  const std::pair<std::string_view, double> others[] = {{"precision", precision()},
                                                        {"recall", recall()},
                                                        {"f1", f1()},
                                                        {"true_positives", true_positives},
                                                        {"false_positives", false_positives},
                                                        {"true_negatives", true_negatives},
                                                        {"false_negatives", false_negatives}};
  for (const auto& [known, value] : others) {
    if (known == name) {
      return value;
    }
  }
  return std::nullopt;
}

std::vector<std::string> DecisionMetrics() {
  std::vector<std::string> names = {"true_positives", "false_positives", "true_negatives",
                                    "false_negatives"};
  for (const double threshold : kThresholds) {
    names.push_back(NameAt(kTruePositivesFrom, threshold));
    names.push_back(NameAt(kFalsePositivesFrom, threshold));
  }
  return names;
}

bool IsDecisionMetric(std::string_view name) {
  return name.starts_with(kTruePositivesFrom) || name.starts_with(kFalsePositivesFrom);
}

std::vector<Decision> DecisionTable(const std::vector<std::pair<std::string, double>>& metrics) {
  const double positives =
      Find(metrics, "true_positives").value_or(0) + Find(metrics, "false_negatives").value_or(0);
  const double negatives =
      Find(metrics, "true_negatives").value_or(0) + Find(metrics, "false_positives").value_or(0);
  std::vector<Decision> table;
  for (const double threshold : kThresholds) {
    const auto hits = Find(metrics, NameAt(kTruePositivesFrom, threshold));
    const auto alarms = Find(metrics, NameAt(kFalsePositivesFrom, threshold));
    if (hits && alarms) {
      table.push_back({threshold, *hits, *alarms, negatives - *alarms, positives - *hits});
    }
  }
  return table;
}

std::vector<std::string> CountsBy(std::string_view rule) {
  return {std::string(kTruePositivesFrom) + std::string(rule),
          std::string(kFalsePositivesFrom) + std::string(rule)};
}

void DecideBy(std::string_view rule, std::vector<std::pair<std::string, double>>* metrics) {
  const std::vector<std::string> counts = CountsBy(rule);
  const auto hits = Find(*metrics, counts[0]);
  const auto alarms = Find(*metrics, counts[1]);
  std::erase_if(*metrics, [&](const auto& one) {
    return !InTable(one.first) && (one.first == counts[0] || one.first == counts[1]);
  });
  if (!hits || !alarms || !std::isfinite(*hits) || !std::isfinite(*alarms)) {
    return;
  }
  const double positives =
      Find(*metrics, "true_positives").value_or(0) + Find(*metrics, "false_negatives").value_or(0);
  const double negatives =
      Find(*metrics, "true_negatives").value_or(0) + Find(*metrics, "false_positives").value_or(0);
  const Decision decided{0, *hits, *alarms, negatives - *alarms, positives - *hits};
  for (auto& [name, value] : *metrics) {
    value = decided.Value(name).value_or(value);
  }
}

}  // namespace sluice::models
