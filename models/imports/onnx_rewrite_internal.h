#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/model.pb.h"

namespace sluice::models {

// Appends a node of an ONNX file to the graph. Operators that are combinations of others (PRelu,
// HardSwish, GreaterOrEqual, LessOrEqual, Sum, Mean, ReduceMin, the two losses of class ids) are
// replaced by these.
Status RewriteOperator(GraphNode node, NetworkGraph* graph);

// Appends a node and returns the name of its only output. `name` is unique.
std::string AddNode(const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& name, NetworkGraph* graph);
// The same for a constant number.
std::string AddNumber(float value, const std::string& name, NetworkGraph* graph);
// A list of integers.
std::string AddIntegers(const std::vector<int64_t>& values, const std::string& name,
                        NetworkGraph* graph);

}  // namespace sluice::models
