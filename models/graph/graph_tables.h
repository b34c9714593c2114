#pragma once

#include <string>
#include <vector>

namespace sluice::models {

class GraphTable;
class NetworkGraph;

// The name of the value that a table is.
const std::string& ValueOf(const GraphTable& table);

// Makes a table of each parameter whose only use is to be read by a feature's ids: its rows are
// then created when they are touched, and only those that a batch needs are pulled and pushed.
// Returns, a line each, which parameters that are read by ids remain whole, and why. Nothing in the
// graph is taken on trust.
std::vector<std::string> MakeTables(NetworkGraph* graph);

}  // namespace sluice::models
