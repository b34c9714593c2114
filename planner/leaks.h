#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "catalog/data_source.h"

namespace sluice::planner {

struct LeakInput {
  const Schema& schema;
  const catalog::SelectStatistics& statistics;
  size_t label = 0;
  bool classes = false;          // whether the label's values are classes; else numbers
  std::vector<size_t> features;  // columns that are features
};

// Finds features that predict the label so well that they are probably known only after it: each
// that does so alone, or by whether it is NULL; pairs whose sum, difference or product is the
// label; and larger sums. Judged by the sample; one line for each, with the figure.
std::vector<std::string> FindLeaks(const LeakInput& input);

}  // namespace sluice::planner
