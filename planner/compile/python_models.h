#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "planner/compile/child_program.h"

namespace sluice::models {
class FeaturePlan;
class Attribute;
struct FeatureBatch;
}  // namespace sluice::models

namespace sluice::planner {

// Whether and how Python is run to compile model types.
struct PythonOptions {
  bool allowed = false;  // else only what was compiled before can be trained
  std::string program = "/usr/bin/python3";
  ProgramLimits limits;
  std::stop_token stop;
};

// A model type's source, and the name of its class or function.
struct PythonSource {
  std::string_view text;
  std::string name;
  bool keras = false;  // else PyTorch
};

// Runs the source, and lists the attributes of its class: JSON for ReadPythonType. Errors of the
// source have their places in it. Thread-safe, as is the rest.
Result<std::string> DescribePythonModel(const PythonSource& source, const PythonOptions& options);

// What a class is instantiated for.
struct PythonModelUse {
  const models::FeaturePlan& features;
  std::vector<const models::Attribute*> attributes;  // "model.hidden"
  int64_t outputs = 1;
  uint64_t seed = 0;
  bool own_loss = true;  // whether loss(output, label) of the source counts, if there is one
};

// Identifies the compiled form: equal keys, equal forms. `owner`: the role that it is kept for;
// `framework`: the version that has described the type.
std::string KeyOfPythonModel(const PythonSource& source, const PythonModelUse& use,
                             std::string_view owner, std::string_view framework);

// Instantiates the class, and traces it: the compiled form (ReadCompiledModel), whose graph agrees
// with the module on a few random batches of one and of seven rows. Of a function in Keras, the
// JSON of its model, and its weights.
Result<std::string> CompilePythonModel(const PythonSource& source, const PythonModelUse& use,
                                       const PythonOptions& options);

}  // namespace sluice::planner
