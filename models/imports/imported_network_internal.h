#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model.pb.h"

namespace sluice::models {

// An input as the file declares it, before features are assigned.
struct ImportedInput {
  std::string name;  // of the value that the nodes read
  bool ids = false;  // integers; else floats
  // After the rows; -1: not declared.
  std::vector<int64_t> extents;
};

// A network as read from a file: operators, parameters and the declared inputs. BindToFeatures
// turns it into a graph that can be run.
struct ImportedNetwork {
  NetworkGraph graph;  // without inputs and tables
  std::vector<ImportedInput> inputs;
  // Initial values, complete for each parameter that is listed; others are initialised by their
  // own initializer.
  std::map<std::string, std::vector<float>> values;
  std::vector<std::string> notes;  // where the import deviates from the file, one line each
};

}  // namespace sluice::models
