#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/model.pb.h"

namespace sluice::models {

// Appends a node of an ONNX file to the graph; those that others say in other words (PRelu,
// HardSwish, GreaterOrEqual, LessOrEqual, Sum, Mean, ReduceMin) as these.
Status RewriteOperator(GraphNode node, NetworkGraph* graph);

// Appends a node and returns what its only output is called. `name` is unique.
std::string AddNode(const std::string& op, const std::vector<std::string>& inputs,
                    const std::string& name, NetworkGraph* graph);
// The same of a constant number.
std::string AddNumber(float value, const std::string& name, NetworkGraph* graph);
// Of whole numbers, along one axis.
std::string AddIntegers(const std::vector<int64_t>& values, const std::string& name,
                        NetworkGraph* graph);

}  // namespace sluice::models
