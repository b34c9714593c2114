#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "models/graph/graph_writer.h"

namespace sluice::models::families {

inline constexpr char kInBatchSoftmax[] = "in_batch_softmax";

// The loss of models of two towers: which of a batch's items a user took. Each row of class 1 is
// held against the items of all rows, but for those that are its own item: whose categories, of
// features of this tower, are all the same. `own`: [rows, 1], the product of the two vectors.
Status WriteInBatchSoftmax(const std::vector<GraphFeature>& features, const std::string& tower,
                           const GraphValue& users, const GraphValue& items, const GraphValue& own,
                           GraphWriter* writer);

}  // namespace sluice::models::families
