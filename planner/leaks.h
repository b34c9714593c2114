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
  bool classes = false;          // the label's values are classes, else numbers
  std::vector<size_t> features;  // columns that are features
};

// Features that say the label too well to be known before it: each that tells it alone, and two
// whose sum, difference or product it is. By the sample; each a line for a person, with the figure.
std::vector<std::string> FindLeaks(const LeakInput& input);

}  // namespace sluice::planner
