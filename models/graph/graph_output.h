#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::models {

class NetworkGraph;

// Makes the output of a graph from elsewhere what the loss takes, where that is the same function.
// For classes: a Sigmoid or Softmax at the end goes, since the loss brings its own; where the loss
// takes one output of two classes and the graph has two, the second less the first. `notes` says
// what was changed, a line each. Nothing in the graph is taken on trust. Returns the operator that
// went; "": none did.
std::string FitOutput(size_t outputs, bool classes, NetworkGraph* graph,
                      std::vector<std::string>* notes);

}  // namespace sluice::models
