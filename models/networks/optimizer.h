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

// An update rule for dense spans and single embedding rows. A parameter and its slots are adjacent:
// values[0, n), then slot_count() x n slot values. Pure: no internal state. Thread-safe. SGD,
// Momentum, Nesterov, Adagrad, Adam, AdamW, AMSGrad, Adamax, Nadam, RMSprop, Adadelta, Ftrl, by the
// published formulas (cited in optimizer.cc); spelled as in Keras, in any case.
class Optimizer {
 public:
  // kBiases: weight_decay, which holds back how much a model makes of a feature, has no effect,
  // unless the spec says that vectors decay, too.
  enum class Of { kWeights, kBiases };
  static Result<std::unique_ptr<Optimizer>> Make(const OptimizerSpec& spec, Of of = Of::kWeights);
  virtual ~Optimizer() = default;

  virtual size_t slot_count() const = 0;
  virtual void InitializeSlots(std::span<float> slots, size_t n) const = 0;
  // Initialises slots for values that were trained elsewhere (a model to continue from): rules that
  // compute a value from its slots alone (Ftrl) would lose the value at their first step.
  virtual void Adopt(const float* values, std::span<float> slots, size_t n) const;
  // One step. `step` counts from 1 (bias correction); rate_scale multiplies the learning rate
  // (1 / staleness in asynchronous mode).
  virtual void Update(float* values, float* slots, const float* gradient, size_t n, int64_t step,
                      float rate_scale) const = 0;
};

// new = momentum x old + (1 - momentum) x the step's value, whatever the rate and the staleness: a
// running mean of batch statistics instead of a descent. For DenseTensor::Group::kStatistics; it
// cannot be chosen by name.
std::unique_ptr<Optimizer> MakeRunningMean(float momentum);

// Names, arguments and defaults of all optimizers, for the registry and the binder.
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
