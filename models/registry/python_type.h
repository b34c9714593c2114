#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/registry/registry.h"

namespace sluice::models {

// A model type written in Python, as the compile step has described it, so that its attributes are
// known without running Python. It is stored as a line of JSON, the description, and its text.
struct PythonType {
  std::string class_name;                 // or the function's
  std::string framework;                  // "torch 1.13.1": which has described it
  std::string doc;                        // one line
  std::vector<AttributeSpec> attributes;  // "model.hidden", from the signature
};

// Fails if an attribute has the name of one that every network has. The text is not trusted. Pure.
Result<PythonType> ReadPythonType(std::string_view description);

struct DescribedSource {
  std::string_view description;
  std::string_view text;
};
DescribedSource SplitDescribedSource(std::string_view stored);

// The attributes of a user's type beside those of every network: model.frozen of an ONNX file, the
// signature of a type in Python, as its stored source describes it.
std::vector<AttributeSpec> AttributesOfSource(std::string_view language, std::string_view stored);

}  // namespace sluice::models
