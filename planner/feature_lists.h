#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "planner/attributes.h"
#include "planner/column_index.h"

namespace sluice::planner {

// features.exclude and features.only into `left_out`: per column why it is no feature unless COLUMN
// names it, or "". `excluded`: per column what it is instead of a feature ("the label"), or "";
// naming such a column is an error, as are unknown ones. Every error is reported.
Status ReadFeatureLists(const AttributeSet& attributes, const ColumnIndex& columns,
                        const std::vector<std::string>& excluded,
                        std::vector<std::string>* left_out);

}  // namespace sluice::planner
