#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "planner/attributes.h"
#include "planner/column_index.h"

namespace sluice::planner {

// Reads features.exclude and features.only into `left_out`: per column, why it is not a feature
// unless COLUMN names it, or "". `excluded`: per column, its other role ("the label"), or "";
// naming such a column is an error, as is an unknown one. Every error is reported.
Status ReadFeatureLists(const AttributeSet& attributes, const ColumnIndex& columns,
                        const std::vector<std::string>& excluded,
                        std::vector<std::string>* left_out);

}  // namespace sluice::planner
