#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::models {

// What a compile step says besides the network: see ReadCompiledModel.
struct CompiledModel {
  // The module's outputs for one batch of the request.
  struct Output {
    size_t width = 1;
    std::vector<double> values;  // rows x width
  };
  // As torch.optim names class and arguments; a pair (betas) has two numbers.
  struct Optimizer {
    std::string name;  // "": the source has none
    int line = 0;      // of the source
    std::vector<std::pair<std::string, std::vector<double>>> arguments;
  };
  // The source's loss of each row of such a batch, and the labels that it was computed for.
  struct Losses {
    std::vector<double> labels;
    std::vector<double> losses;
  };
  std::vector<Output> outputs;
  Optimizer optimizer;
  std::vector<Losses> losses;  // empty: the source has no loss, or it was not asked for
  int loss_line = 0;
};

// The compiled form of a model type written in Python: a line of JSON, then an ONNX file, and
// perhaps another one of the loss; or Keras's JSON, then weights. It is the text of ImportSource
// for the languages "pytorch" and kKerasInPython. It is not trusted. Pure.
Result<CompiledModel> ReadCompiledModel(std::string_view compiled);

}  // namespace sluice::models
