#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/networks/loss.h"

// What losses are of a batch, and their gradients.
namespace sluice::models {

LossSum Loss::Compute(size_t rows, const float* logits, const float* labels, const float* weights,
                      float* gradient) {
  const size_t per_row = kind_ == Kind::kSoftmax || kind_ == Kind::kQuantile ? 1 : outputs_;
  losses_.resize(rows * per_row);
  if (kind_ == Kind::kLogistic) {
    ComputeLogistic(rows, logits, labels, gradient);
  } else if (kind_ == Kind::kSoftmax) {
    ComputeSoftmax(rows, logits, labels, gradient);
  } else if (kind_ == Kind::kQuantile) {
    ComputeQuantiles(rows, logits, labels, gradient);
  } else {
    ComputeEach(rows * outputs_, logits, labels, gradient);
  }
  LossSum sum;
  for (size_t r = 0; r < rows; ++r) {
    double loss = 0;
    for (size_t o = 0; o < per_row; ++o) {
      loss += static_cast<double>(losses_[r * per_row + o]);
    }
    const double weight = weights == nullptr ? 1.0 : static_cast<double>(weights[r]);
    sum.loss += weight * loss;
    sum.weight += weight;
  }
  if (gradient != nullptr) {
    const float share = sum.weight > 0 ? static_cast<float>(1.0 / sum.weight) : 0.0f;
    for (size_t r = 0; r < rows; ++r) {
      const float factor = weights == nullptr ? share : share * weights[r];
      for (size_t o = 0; o < outputs_; ++o) {
        gradient[r * outputs_ + o] *= factor;
      }
    }
  }
  return sum;
}

void Loss::ComputeLogistic(size_t rows, const float* logits, const float* labels, float* gradient) {
  exponents_.resize(rows);
  ActiveKernels().logistic(logits, labels, losses_.data(), exponents_.data(), rows);
  if (gradient != nullptr) {
    for (size_t r = 0; r < rows; ++r) {
      gradient[r] = exponents_[r] - labels[r];
    }
  }
}

namespace {

// Prevents overflow of the exponentials.
void SubtractLargest(float* row, size_t n) {
  const float largest = *std::max_element(row, row + n);
  for (size_t o = 0; o < n; ++o) {
    row[o] -= largest;
  }
}

float Sum(const float* row, size_t n) {
  float sum = 0;
  for (size_t o = 0; o < n; ++o) {
    sum += row[o];
  }
  return sum;
}

}  // namespace

void Loss::ComputeSoftmax(size_t rows, const float* logits, const float* labels, float* gradient) {
  const size_t n = outputs_;
  exponents_.assign(logits, logits + rows * n);
  for (size_t r = 0; r < rows; ++r) {
    float* row = exponents_.data() + r * n;
    SubtractLargest(row, n);
    const auto id = static_cast<size_t>(labels[r]);
    SLUICE_CHECK(id < n, "a label is a class id");
    losses_[r] = -row[id];
  }
  ActiveKernels().exp(exponents_.data(), rows * n);
  for (size_t r = 0; r < rows; ++r) {
    const float* row = exponents_.data() + r * n;
    const float sum = Sum(row, n);
    losses_[r] += std::log(sum);
    if (gradient != nullptr) {
      for (size_t o = 0; o < n; ++o) {
        gradient[r * n + o] = row[o] / sum;
      }
      gradient[r * n + static_cast<size_t>(labels[r])] -= 1;
    }
  }
}

namespace {

// Loss and slope for one output.
struct LossAndSlope {
  float loss = 0;
  float slope = 0;
};

LossAndSlope HingeOf(float z, float y, bool squared) {
  const float sign = y > 0.5f ? 1.0f : -1.0f;
  const float margin = std::max(0.0f, 1.0f - sign * z);
  if (squared) {
    return {margin * margin, -2.0f * sign * margin};
  }
  return {margin, margin > 0 ? -sign : 0.0f};
}

LossAndSlope HuberOf(float error, float delta) {
  const float size = std::fabs(error);
  if (size <= delta) {
    return {0.5f * error * error, error};
  }
  return {delta * (size - 0.5f * delta), error > 0 ? delta : -delta};
}

LossAndSlope LogCoshOf(float error) {
  const float size = std::fabs(error);
  // log(cosh(x)) = |x| + log(1 + exp(-2|x|)) - log(2)
  return {size + std::log1p(std::exp(-2.0f * size)) - 0.69314718f, std::tanh(error)};
}

// Rates beyond exp(+-30) times the mean come from a diverged network; the bound keeps the loss
// finite.
constexpr float kLargestLogRate = 30.0f;

// What is learnt is log(y / unit).
double UnitOf(const LabelScale& scale) {
  return scale.mean > 0 ? scale.mean : 1;
}

double InUnits(float label, const LabelScale& scale) {
  return (static_cast<double>(label) * scale.scale + scale.mean) / UnitOf(scale);
}

LossAndSlope PoissonOf(float z, double target) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float rate = std::exp(bounded);
  const auto y = static_cast<float>(target);
  return {rate - y * bounded, rate - y};
}

// Half the deviance but for what does not depend on z: of the gamma distribution y / rate + log
// rate.
LossAndSlope GammaOf(float z, double target) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float ratio = static_cast<float>(target) * std::exp(-bounded);
  return {ratio + bounded, 1.0F - ratio};
}

// Of the compound Poisson distribution with variance rate ^ power. Source: Jorgensen, The Theory of
// Dispersion Models, 1997, chapter 4.
LossAndSlope TweedieOf(float z, double target, float power) {
  const float bounded = std::clamp(z, -kLargestLogRate, kLargestLogRate);
  const float below = static_cast<float>(target) * std::exp((1.0F - power) * bounded);
  const float above = std::exp((2.0F - power) * bounded);
  return {below / (power - 1.0F) + above / (2.0F - power), above - below};
}

}  // namespace

void Loss::ComputeEach(size_t n, const float* logits, const float* labels, float* gradient) {
  for (size_t i = 0; i < n; ++i) {
    const float error = logits[i] - labels[i];
    LossAndSlope at;
    switch (kind_) {
      case Kind::kHinge:
      case Kind::kSquaredHinge:
        at = HingeOf(logits[i], labels[i], kind_ == Kind::kSquaredHinge);
        break;
      case Kind::kAbsolute:
        at = {std::fabs(error), error > 0 ? 1.0f : (error < 0 ? -1.0f : 0.0f)};
        break;
      case Kind::kHuber:
        at = HuberOf(error, delta_);
        break;
      case Kind::kLogCosh:
        at = LogCoshOf(error);
        break;
      case Kind::kPoisson:
        at = PoissonOf(logits[i], InUnits(labels[i], scales_[i % outputs_]));
        break;
      case Kind::kGamma:
        at = GammaOf(logits[i], InUnits(labels[i], scales_[i % outputs_]));
        break;
      case Kind::kTweedie:
        at = TweedieOf(logits[i], InUnits(labels[i], scales_[i % outputs_]), power_);
        break;
      default:
        at = {error * error, 2.0f * error};
    }
    losses_[i] = at.loss;
    if (gradient != nullptr) {
      gradient[i] = at.slope;
    }
  }
}

namespace {

// Rows x outputs: the first output is the lowest quantile, each further one is as much above the
// one before as softplus says, so that quantiles never cross. `slopes`, unless nullptr, receives
// the derivative of each step, which is the sigmoid.
void ToQuantiles(size_t rows, size_t outputs, float* logits, std::vector<float>* slopes) {
  const size_t n = rows * outputs;
  const std::vector<float> zeros(n);
  std::vector<float> steps(n), sigmoids(n);
  ActiveKernels().logistic(logits, zeros.data(), steps.data(), sigmoids.data(), n);
  for (size_t i = 0; i < n; ++i) {
    if (i % outputs > 0) {
      logits[i] = logits[i - 1] + steps[i];
    } else {
      sigmoids[i] = 1;
    }
  }
  if (slopes != nullptr) {
    *slopes = std::move(sigmoids);
  }
}

}  // namespace

// The mean over the quantiles of the pinball loss. Source: Koenker and Bassett, Regression
// Quantiles, 1978.
void Loss::ComputeQuantiles(size_t rows, const float* logits, const float* labels,
                            float* gradient) {
  const size_t n = outputs_;
  const float share = 1.0F / static_cast<float>(n);
  exponents_.assign(logits, logits + rows * n);
  std::vector<float> slopes;
  ToQuantiles(rows, n, exponents_.data(), &slopes);
  for (size_t r = 0; r < rows; ++r) {
    float loss = 0;
    float above = 0;  // the gradient of this quantile and those above, which it shifts
    for (size_t o = n; o-- > 0;) {
      const size_t i = r * n + o;
      const float error = labels[r] - exponents_[i];
      const float side = error > 0 ? quantiles_[o] : quantiles_[o] - 1;
      loss += side * error;
      above -= side;
      if (gradient != nullptr) {
        gradient[i] = share * above * slopes[i];
      }
    }
    losses_[r] = share * loss;
  }
}

void Loss::ToPredictions(size_t rows, float* logits, std::vector<double>* predictions) const {
  const size_t n = rows * outputs_;
  predictions->resize(n);
  switch (kind_) {
    case Kind::kLogistic:
    case Kind::kHinge:
    case Kind::kSquaredHinge:
      ActiveKernels().sigmoid(logits, n);
      break;
    case Kind::kSoftmax:
      for (size_t r = 0; r < rows; ++r) {
        SubtractLargest(logits + r * outputs_, outputs_);
      }
      ActiveKernels().exp(logits, n);
      for (size_t r = 0; r < rows; ++r) {
        float* row = logits + r * outputs_;
        const float sum = Sum(row, outputs_);
        for (size_t o = 0; o < outputs_; ++o) {
          row[o] /= sum;
        }
      }
      break;
    case Kind::kPoisson:
    case Kind::kGamma:
    case Kind::kTweedie:
      for (size_t i = 0; i < n; ++i) {
        const float bounded = std::clamp(logits[i], -kLargestLogRate, kLargestLogRate);
        (*predictions)[i] = std::exp(static_cast<double>(bounded)) * UnitOf(scales_[i % outputs_]);
      }
      return;
    default:
      if (kind_ == Kind::kQuantile) {
        ToQuantiles(rows, outputs_, logits, nullptr);
      }
      for (size_t i = 0; i < n; ++i) {
        const LabelScale& own = scales_[i % scales_.size()];
        const double number = own.Predicted(static_cast<double>(logits[i]));
        (*predictions)[i] = never_negative_ ? std::max(number, 0.0) : number;
      }
      return;
  }
  std::copy_n(logits, n, predictions->begin());
}

}  // namespace sluice::models
