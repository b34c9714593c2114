#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/xgboost_library_internal.h"

namespace sluice::models {
namespace {

// `type` is one of libxgboost's importance types; one entry per feature of the plan.
Result<std::map<std::string, double>> Scores(void* booster, const ColumnLayout& layout,
                                             const char* type) {
  bst_ulong names = 0;
  char const** features = nullptr;
  bst_ulong dimensions = 0;
  bst_ulong const* shape = nullptr;
  float const* scores = nullptr;
  const std::string settings = fmt::format(R"({{"importance_type":"{}"}})", type);
  RETURN_IF_ERROR(
      CheckXgboost(Xgboost().XGBoosterFeatureScore(booster, settings.c_str(), &names, &features,
                                                   &dimensions, &shape, &scores),
                   "scoring features"));
  // A linear model with several classes has a weight per class.
  const size_t per_column = dimensions > 1 ? static_cast<size_t>(shape[1]) : 1;
  std::map<std::string, double> sums;
  for (size_t i = 0; i < names; ++i) {
    size_t column = 0;  // "f12"
    const std::string_view name = features[i];
    const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), column);
    if (parsed.ec != std::errc() || column >= layout.columns()) {
      return Internal(fmt::format("XGBoost names a feature '{}'", name));
    }
    for (size_t k = 0; k < per_column; ++k) {
      const auto score = static_cast<double>(scores[i * per_column + k]);
      sums[layout.feature(column)] += std::fabs(score);
    }
  }
  return sums;
}

}  // namespace

Result<std::vector<GradientBoosting::Importance>> ImportanceOfFeatures(void* booster,
                                                                       const ColumnLayout& layout,
                                                                       bool linear) {
  ASSIGN_OR_RETURN(const auto weights, Scores(booster, layout, "weight"));
  std::vector<GradientBoosting::Importance> importance;
  if (linear) {
    for (const auto& [feature, weight] : weights) {
      if (weight > 0) {
        importance.push_back({feature, 0, weight});
      }
    }
  } else {
    ASSIGN_OR_RETURN(const auto gains, Scores(booster, layout, "total_gain"));
    for (const auto& [feature, splits] : weights) {
      const auto gain = gains.find(feature);
      importance.push_back({feature, splits, gain == gains.end() ? 0 : gain->second});
    }
  }
  std::stable_sort(importance.begin(), importance.end(),
                   [](const GradientBoosting::Importance& a,
                      const GradientBoosting::Importance& b) { return a.gain > b.gain; });
  return importance;
}

}  // namespace sluice::models
