#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/model.h"
#include "models/model_language.h"

namespace sluice::models {

class ModelSpec;

// "onnx", "keras", "pytorch".
const std::vector<std::string>& ImportLanguages();

struct ImportSource {
  std::string_view language;        // one of ImportLanguages, or kKerasInPython
  std::string_view text;            // onnx: the bytes of the file; keras: JSON; in Python: see
                                    // compiled_model.h
  std::vector<std::string> frozen;  // onnx: parameters that do not learn
  bool own_loss = true;             // pytorch: whether loss() of the source, if any, counts
  // What the initial values may take of memory; 53200 instead of making more.
  int64_t most_bytes = std::numeric_limits<int64_t>::max();
};

// What an import yields besides the graph.
struct ImportReport {
  // The initial values that the file has, for the network of the resulting spec.
  std::optional<NetworkWeights> start;
  std::vector<std::string> notes;            // one line each, for the user
  std::vector<std::string> unread_features;  // features of the spec that the network does not read
};

// Fills in ModelSpec.graph from a user's file. The spec's features, label and loss are already set.
// Inputs are matched to features by name, in any case; a single float input whose name is not a
// feature's gets all numeric features. If the label is a class, a Sigmoid or Softmax at the end is
// left to the loss, and two outputs for two classes become one. Errors name what in the file does
// not fit the features, or is not supported. The file is not trusted. Whether the operators fit
// together is checked by Network::Make. Pure; thread-safe.

Status ImportNetwork(const ImportSource& source, ModelSpec* spec, ImportReport* report);

// Of a compiled form that has a loss: a model whose features are the outputs themselves, `width`
// numbers, so that its Step computes the loss of any output. The spec's label is set.
Status ImportLossAlone(std::string_view compiled, size_t width, ModelSpec* spec);

// Errors of the source that do not depend on the features.
Status CheckImport(const ImportSource& source);

}  // namespace sluice::models
