#include "models/networks/optimizer.h"

namespace sluice::models {
namespace {

class RunningMean final : public Optimizer {
 public:
  explicit RunningMean(float momentum) : momentum_(momentum) {}
  size_t slot_count() const override { return 0; }
  void InitializeSlots(std::span<float> /*slots*/, size_t /*n*/) const override {}
  void Update(float* values, float* /*slots*/, const float* gradient, size_t n, int64_t /*step*/,
              float /*rate_scale*/) const override {
    if (momentum_ == 1) {  // needed because the step's value may be NaN
      return;
    }
    for (size_t i = 0; i < n; ++i) {
      values[i] = momentum_ * values[i] + (1 - momentum_) * gradient[i];
    }
  }

 private:
  float momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeRunningMean(float momentum) {
  return std::make_unique<RunningMean>(momentum);
}

}  // namespace sluice::models
