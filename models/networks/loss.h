#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "models/features/label_scale.h"
#include "models/model.h"

namespace sluice::models {

class LabelPlan;
class ModelSpec;

// The function that training minimises, and the conversion of a network's outputs to predictions.
// Not thread-safe (has scratch space).
class Loss {
 public:
  enum class Kind {
    kLogistic,
    kHinge,
    kSquaredHinge,  // two classes: labels 0 and 1, one output
    kSoftmax,       // labels are class ids, one output per class
    kSquared,
    kAbsolute,
    kHuber,
    kLogCosh,
    kPoisson,
    kGamma,
    kTweedie,   // numbers; these three learn log(y / mean), the others (y - mean) / scale
    kQuantile,  // one number, one output for each of model.quantiles
  };

  // ModelSpec.loss, by our names or Keras's, in any case; "" = chosen by the label. Fails if the
  // loss does not fit the label.
  static Result<Loss> Make(const ModelSpec& spec);

  Kind kind() const { return kind_; }
  size_t outputs() const { return outputs_; }

  // `logits` and `labels` are rows x outputs (softmax and quantiles: one label per row), `weights`
  // is rows or nullptr. Writes the gradient of the weighted mean loss, unless `gradient` is
  // nullptr.
  LossSum Compute(size_t rows, const float* logits, const float* labels, const float* weights,
                  float* gradient);
  // rows x outputs: probabilities, or numbers in the label's own unit, which 32 bits may not tell
  // apart. Overwrites `logits`.
  void ToPredictions(size_t rows, float* logits, std::vector<double>* predictions) const;

 private:
  Loss() = default;
  void ComputeLogistic(size_t rows, const float* logits, const float* labels, float* gradient);
  void ComputeSoftmax(size_t rows, const float* logits, const float* labels, float* gradient);
  bool learns_logarithms() const {
    return kind_ == Kind::kPoisson || kind_ == Kind::kGamma || kind_ == Kind::kTweedie;
  }
  void ComputeEach(size_t n, const float* logits, const float* labels, float* gradient);
  void ComputeQuantiles(size_t rows, const float* logits, const float* labels, float* gradient);

  Kind kind_ = Kind::kSquared;
  size_t outputs_ = 1;
  float delta_ = 1;                 // Huber, in units of the label's scale
  float power_ = 1.5F;              // Tweedie: variance = mean ^ power, between 1 and 2
  std::vector<float> quantiles_;    // ascending
  bool never_negative_ = false;     // LabelPlan.never_negative
  std::vector<LabelScale> scales_;  // for numbers: one per output; the scale of labels in batches
  std::vector<float> losses_;       // one per logit; softmax: one per row
  std::vector<float> exponents_;
};

}  // namespace sluice::models
