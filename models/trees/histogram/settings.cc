#include "models/trees/histogram/settings.h"

#include <algorithm>

#include "base/value.h"
#include "models/features/cell_format.h"

namespace sluice::models::histogram {
namespace {

// One code of a byte is that of missing numbers; and so of two.
constexpr int kBinsOfOneByte = 256;
constexpr int kMostBins = 65'535;

}  // namespace

Settings SettingsOf(const BoostingParameters& parameters) {
  Settings settings;
  TreeRules& rules = settings.rules;
  ObjectiveSettings& objective = settings.objective;
  objective.name = parameters.objective;
  objective.classes = parameters.raw_outputs;
  std::optional<double> most_step;
  for (const auto& [name, text] : parameters.settings) {
    const double number = ParseNumber(text).value_or(0);
    if (name == "eta" || name == "learning_rate") {
      rules.eta = number;
    } else if (name == "lambda" || name == "reg_lambda") {
      rules.lambda = number;
    } else if (name == "alpha" || name == "reg_alpha") {
      rules.alpha = number;
    } else if (name == "gamma" || name == "min_split_loss") {
      rules.gamma = number;
    } else if (name == "min_child_weight") {
      rules.min_child_weight = number;
    } else if (name == "max_delta_step") {
      most_step = number;
    } else if (name == "max_depth") {
      rules.max_depth = static_cast<int>(number);
    } else if (name == "max_leaves") {
      rules.max_leaves = static_cast<int>(number);
    } else if (name == "grow_policy") {
      rules.best_first = text == "lossguide";
    } else if (name == "subsample") {
      rules.subsample = number;
    } else if (name == "colsample_bytree") {
      rules.colsample_bytree = number;
    } else if (name == "colsample_bylevel") {
      rules.colsample_bylevel = number;
    } else if (name == "colsample_bynode") {
      rules.colsample_bynode = number;
    } else if (name == "seed") {
      rules.seed = static_cast<uint64_t>(number);
    } else if (name == "scale_pos_weight") {
      objective.scale_pos_weight = number;
    } else if (name == "tweedie_variance_power") {
      objective.tweedie_variance_power = number;
    } else if (name == "huber_slope") {
      objective.huber_slope = number;
    } else if (name == "num_parallel_tree") {
      settings.parallel_trees = static_cast<size_t>(std::max(1.0, number));
    } else if (name == "base_score") {
      settings.base_score = static_cast<float>(number);
    } else if (name == "eval_metric") {
      settings.metrics.push_back(text);
    }
  }
  rules.eta /= static_cast<double>(settings.parallel_trees);
  if (parameters.objective == "count:poisson") {
    objective.poisson_max_delta_step = most_step.value_or(objective.poisson_max_delta_step);
    most_step = objective.poisson_max_delta_step;
  }
  rules.max_delta_step = most_step.value_or(0);
  const int bins = std::min(parameters.max_bin, kMostBins);
  settings.most_bins = static_cast<size_t>(bins == kBinsOfOneByte ? bins - 1 : std::max(2, bins));
  return settings;
}

}  // namespace sluice::models::histogram
