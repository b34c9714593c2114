#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/rules.h"

namespace sluice::models::histogram {

// What libxgboost would be told, for trees that are grown here.
struct Settings {
  TreeRules rules;
  ObjectiveSettings objective;
  size_t parallel_trees = 1;
  size_t most_bins = 255;
  std::optional<float> base_score;
  std::vector<std::string> metrics;  // those asked for
};
Settings SettingsOf(const BoostingParameters& parameters);

}  // namespace sluice::models::histogram
