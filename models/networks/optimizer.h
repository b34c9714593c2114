#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::models {

class OptimizerSpec;

// One update rule for dense spans and for single embedding rows. A parameter and its slots lie side
// by side: values[0, n), then slot_count() x n slot values. Pure: no state inside. Thread-safe.
// SGD, Momentum, Nesterov, Adagrad, Adam, AMSGrad, Adamax, Nadam, RMSprop, Adadelta, Ftrl, to the
// published formulas (named in optimizer.cc); spelled as Keras does, any case.
class Optimizer {
 public:
  static Result<std::unique_ptr<Optimizer>> Make(const OptimizerSpec& spec);
  virtual ~Optimizer() = default;

  virtual size_t slot_count() const = 0;
  virtual void InitializeSlots(std::span<float> slots, size_t n) const = 0;
  // Fits fresh slots to values that were trained elsewhere (a model to continue from): rules that
  // compute a value from its slots alone (Ftrl) would forget it at their first step.
  virtual void Adopt(const float* values, std::span<float> slots, size_t n) const;
  // One step. `step` counts from 1 (bias correction); rate_scale multiplies the learning rate
  // (1 / staleness in asynchronous mode).
  virtual void Update(float* values, float* slots, const float* gradient, size_t n, int64_t step,
                      float rate_scale) const = 0;
};

// new = momentum x old + (1 - momentum) x what a step gives, whatever the rate and the staleness:
// not a descent, but what a batch had. For DenseTensor::Group::kStatistics; nobody chooses it by
// name.
std::unique_ptr<Optimizer> MakeRunningMean(float momentum);

// Names and the arguments with defaults of every optimizer, for the registry and the binder.
struct OptimizerArgument {
  std::string name;
  double default_value = 0;
  bool is_flag = false;
  double min = 0, max = 0;
  std::string doc;
};
struct OptimizerDescription {
  std::string name;
  std::vector<OptimizerArgument> arguments;
};
const std::vector<OptimizerDescription>& Optimizers();

}  // namespace sluice::models
