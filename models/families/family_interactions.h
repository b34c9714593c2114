#pragma once

#include <vector>

#include "models/graph/graph_writer.h"

// Common to FM and DeepFM.
namespace sluice::models::families {

struct Interactions {
  GraphValue linear;   // [rows, outputs]: a weight for each feature, and a bias
  GraphValue pairs;    // [rows, outputs]: interactions of all pairs of features
  GraphValue numbers;  // [rows, width]: bounded; width 0 if no feature is numeric
  GraphValue vectors;  // [rows, categories x k]; width 0 if no feature is a category
};

// Reads model.k and model.l2. The weights and the vector of a category are one row of its table.
Interactions WriteInteractions(const std::vector<GraphFeature>& features, size_t outputs,
                               const AttributeValues& attributes, GraphWriter* writer);

}  // namespace sluice::models::families
