#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/model.pb.h"

namespace sluice::models {

// An input as a file declares it, before it is known which features there are.
struct ImportedInput {
  std::string name;  // of the value that nodes read
  bool ids = false;  // whole numbers, else floats
  // Behind the rows; -1: not said.
  std::vector<int64_t> extents;
};

// A network that was read from a file: operators and parameters, with what the inputs want. Only
// BindToFeatures makes a graph of it that can be run.
struct ImportedNetwork {
  NetworkGraph graph;  // without inputs and tables
  std::vector<ImportedInput> inputs;
  // Initial values of parameters, as many as they have elements; those that are not here are
  // initialised as their parameter says.
  std::map<std::string, std::vector<float>> values;
  std::vector<std::string> notes;  // what was read otherwise than as it stands, a line each
};

}  // namespace sluice::models
