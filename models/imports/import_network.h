#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/model.h"

namespace sluice::models {

class ModelSpec;

// "onnx", "keras".
const std::vector<std::string>& ImportLanguages();

struct ImportSource {
  std::string_view language;        // one of ImportLanguages
  std::string_view text;            // onnx: the bytes of the file; keras: JSON
  std::vector<std::string> frozen;  // onnx: parameters that do not learn
};

// What came with a network from elsewhere besides its graph.
struct ImportReport {
  // Initial values, where the file has them: of the network that the spec then makes.
  std::optional<NetworkWeights> start;
  std::vector<std::string> notes;            // a line each, for people
  std::vector<std::string> unread_features;  // of the spec: the network reads none of them
};

// Fill in ModelSpec.graph from what users bring. The spec's features, label and loss are there
// already: inputs are features by their names (any case); the only input of floats whose name is
// no feature's gets all numeric ones. Where the label is a class, a Sigmoid or Softmax at the end
// is left to the loss, and two outputs of two classes become one. Errors say what of the file does
// not fit the features, or what of it is not supported; nothing in it is taken on trust. Whether
// the operators fit together is found out by Network::Make. Pure; thread-safe.

Status ImportNetwork(const ImportSource& source, ModelSpec* spec, ImportReport* report);

// What is wrong with the source, whatever the features are.
Status CheckImport(const ImportSource& source);

}  // namespace sluice::models
