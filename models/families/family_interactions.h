#pragma once

#include <vector>

#include "models/graph/graph_writer.h"

// What FM and DeepFM share.
namespace sluice::models::families {

struct Interactions {
  GraphValue linear;   // [rows, outputs]: a weight of each feature, and a bias
  GraphValue pairs;    // [rows, outputs]: of each two features
  GraphValue numbers;  // [rows, width]: bounded; none where no feature is numeric
  GraphValue vectors;  // [rows, categories x k]; none where no feature is a category
};

// Reads model.k and model.l2. A category's weights and vector are one row of its table.
Interactions WriteInteractions(const std::vector<GraphFeature>& features, size_t outputs,
                               const AttributeValues& attributes, GraphWriter* writer);

}  // namespace sluice::models::families
