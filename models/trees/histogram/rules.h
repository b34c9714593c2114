#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::models::histogram {

// How a tree is grown: XGBoost's attributes of the same names.
struct TreeRules {
  double eta = 0.3;
  double lambda = 1;
  double alpha = 0;
  double gamma = 0;
  double min_child_weight = 1;
  double max_delta_step = 0;  // 0: no limit
  int max_depth = 6;          // 0: no limit
  int max_leaves = 0;         // 0: no limit
  bool best_first = false;    // lossguide
  double subsample = 1;
  double colsample_bytree = 1, colsample_bylevel = 1, colsample_bynode = 1;
  uint64_t seed = 0;
};

}  // namespace sluice::models::histogram
