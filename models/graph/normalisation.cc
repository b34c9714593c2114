#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "models/features/feature_transform.h"
#include "models/graph/operator_internal.h"

// Softmax, normalizations and dropout.
namespace sluice::models::graph {
namespace {

// exp(x) / sum exp(x) along an axis, or its logarithm.
template <bool kLogarithm>
class Softmax final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    const Shape& x = node.In(0).shape;
    ASSIGN_OR_RETURN(const size_t axis, AxisOf(node.attributes->Integer("axis", -1), x.size()));
    outer_ = static_cast<size_t>(ExtentOf(x, 0, axis));
    width_ = static_cast<size_t>(x[axis]);
    inner_ = static_cast<size_t>(ExtentOf(x, axis + 1));
    return node.Shaped(x);
  }
  void Forward(const OperatorContext& node) override {
    const size_t n = node.Out().count();
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    float* exponents = y;
    if constexpr (kLogarithm) {
      exponents_.resize(n);
      exponents = exponents_.data();
    }
    sums_.assign(outer_ * inner_, 0.0F);
    ForEachLine([&](size_t, size_t first) {
      float most = width_ == 0 ? 0.0F : x[first];
      for (size_t k = 1; k < width_; ++k) {
        const float own = x[first + k * inner_];
        most = own > most || own != own ? own : most;
      }
      for (size_t k = 0; k < width_; ++k) {
        exponents[first + k * inner_] = x[first + k * inner_] - most;
        if constexpr (kLogarithm) {
          y[first + k * inner_] = x[first + k * inner_] - most;
        }
      }
    });
    node.kernels->exp(exponents, n);
    ForEachLine([&](size_t line, size_t first) {
      for (size_t k = 0; k < width_; ++k) {
        sums_[line] += exponents[first + k * inner_];
      }
    });
    if constexpr (kLogarithm) {
      logarithms_ = sums_;
      node.kernels->log(logarithms_.data(), logarithms_.size());
    }
    ForEachLine([&](size_t line, size_t first) {
      for (size_t k = 0; k < width_; ++k) {
        const size_t at = first + k * inner_;
        if constexpr (kLogarithm) {
          y[at] -= logarithms_[line];
        }
        exponents[at] /= sums_[line];
      }
    });
  }
  void Backward(const OperatorContext& node) override {
    const GradientTarget target = node.Target(0);
    if (!target) {
      return;
    }
    const float* back = node.Back();
    const float* share = kLogarithm ? exponents_.data() : node.Out().numbers;
    ForEachLine([&](size_t, size_t first) {
      float sum = 0;
      for (size_t k = 0; k < width_; ++k) {
        const size_t at = first + k * inner_;
        sum += kLogarithm ? back[at] : back[at] * share[at];
      }
      for (size_t k = 0; k < width_; ++k) {
        const size_t at = first + k * inner_;
        const float own = kLogarithm ? back[at] - share[at] * sum : share[at] * (back[at] - sum);
        target.to[at] = target.add ? target.to[at] + own : own;
      }
    });
  }

 private:
  template <typename Body>
  void ForEachLine(Body body) const {
    for (size_t line = 0; line < outer_ * inner_; ++line) {
      body(line, line / inner_ * width_ * inner_ + line % inner_);
    }
  }
  size_t outer_ = 0;
  size_t width_ = 0;
  size_t inner_ = 0;
  std::vector<float> exponents_;
  std::vector<float> sums_;
  std::vector<float> logarithms_;
};

// Normalizes each row by its own mean and standard deviation.
class LayerNormalization final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    RETURN_IF_ERROR(node.NeedFloat(1));
    const Shape& x = node.In(0).shape;
    ASSIGN_OR_RETURN(const size_t axis, AxisOf(node.attributes->Integer("axis", -1), x.size()));
    epsilon_ = node.attributes->Number("epsilon", 1e-5F);
    rows_ = static_cast<size_t>(ExtentOf(x, 0, axis));
    width_ = static_cast<size_t>(ExtentOf(x, axis));
    for (const size_t k : {size_t{1}, size_t{2}}) {
      if (node.Has(k)) {
        RETURN_IF_ERROR(node.NeedFloat(k));
        if (node.In(k).count() != width_) {
          return InvalidArgument(
              fmt::format("scale and bias need {} numbers, not {}", width_, node.In(k).count()));
        }
      }
    }
    return node.Shaped(x);
  }
  void Forward(const OperatorContext& node) override {
    const float* x = node.In(0).numbers;
    const float* scale = node.In(1).numbers;
    const float* bias = node.Has(2) ? node.In(2).numbers : nullptr;
    float* y = node.Out().numbers;
    standard_.resize(rows_ * width_);
    inverse_.resize(rows_);
    for (size_t r = 0; r < rows_; ++r) {
      const float* own = x + r * width_;
      float* standard = standard_.data() + r * width_;
      float mean = 0;
      for (size_t i = 0; i < width_; ++i) {
        mean += own[i];
      }
      mean /= static_cast<float>(width_);
      float variance = 0;
      for (size_t i = 0; i < width_; ++i) {
        standard[i] = own[i] - mean;
        variance += standard[i] * standard[i];
      }
      inverse_[r] = 1.0F / std::sqrt(variance / static_cast<float>(width_) + epsilon_);
      for (size_t i = 0; i < width_; ++i) {
        standard[i] *= inverse_[r];
        y[r * width_ + i] = standard[i] * scale[i] + (bias == nullptr ? 0.0F : bias[i]);
      }
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const float* scale = node.In(1).numbers;
    float* to_scale = node.Zeroed(1);
    float* to_bias = node.Zeroed(2);
    const GradientTarget target = node.Target(0);
    for (size_t r = 0; r < rows_; ++r) {
      const float* own = back + r * width_;
      const float* standard = standard_.data() + r * width_;
      float sum = 0;
      float products = 0;
      for (size_t i = 0; i < width_; ++i) {
        if (to_scale != nullptr) {
          to_scale[i] += own[i] * standard[i];
        }
        if (to_bias != nullptr) {
          to_bias[i] += own[i];
        }
        sum += own[i] * scale[i];
        products += own[i] * scale[i] * standard[i];
      }
      const float share = 1.0F / static_cast<float>(width_);
      for (size_t i = 0; target && i < width_; ++i) {
        const float slope =
            inverse_[r] * (own[i] * scale[i] - (sum + standard[i] * products) * share);
        float& to = target.to[r * width_ + i];
        to = target.add ? to + slope : slope;
      }
    }
  }

 private:
  size_t rows_ = 0;
  size_t width_ = 0;
  float epsilon_ = 0;
  std::vector<float> standard_;
  std::vector<float> inverse_;
};

// Normalizes each channel by the mean and variance of the batch in training, otherwise by the
// running statistics. Those of the batch are returned as the "gradient" of the running ones: see
// the optimizer RunningMean.
class BatchNormalization final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    const Shape& x = node.In(0).shape;
    for (size_t k = 0; k < 5; ++k) {
      RETURN_IF_ERROR(node.NeedFloat(k));
    }
    if (x.size() < 2) {
      return InvalidArgument(fmt::format("a value of shape {} has no channels", ShapeText(x)));
    }
    rows_ = static_cast<size_t>(x[0]);
    channels_ = static_cast<size_t>(x[1]);
    inner_ = static_cast<size_t>(ExtentOf(x, 2));
    for (size_t k = 1; k < 5; ++k) {
      if (node.In(k).count() != channels_) {
        return InvalidArgument(
            fmt::format("{} channels need as many scales, biases, means and "
                        "variances",
                        channels_));
      }
    }
    epsilon_ = node.attributes->Number("epsilon", 1e-5F);
    return node.Shaped(x);
  }
  void Forward(const OperatorContext& node) override {
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    const size_t count = rows_ * inner_;
    measured_ = node.train && count > 0;
    mean_.assign(node.In(3).numbers, node.In(3).numbers + channels_);
    variance_.assign(node.In(4).numbers, node.In(4).numbers + channels_);
    if (measured_) {
      Measure(x, static_cast<float>(count));
    }
    inverse_.resize(channels_);
    for (size_t c = 0; c < channels_; ++c) {
      inverse_[c] = 1.0F / std::sqrt(variance_[c] + epsilon_);
    }
    standard_.resize(count * channels_);
    ForEach([&](size_t at, size_t c) {
      standard_[at] = (x[at] - mean_[c]) * inverse_[c];
      y[at] = standard_[at] * node.In(1).numbers[c] + node.In(2).numbers[c];
    });
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    sums_.assign(channels_, 0.0F);
    products_.assign(channels_, 0.0F);
    ForEach([&](size_t at, size_t c) {
      sums_[c] += back[at];
      products_[c] += back[at] * standard_[at];
    });
    AddChannels(node, 1, products_);
    AddChannels(node, 2, sums_);
    if (measured_) {
      AddChannels(node, 3, mean_);
      AddChannels(node, 4, variance_);
    }
    const GradientTarget target = node.Target(0);
    if (!target) {
      return;
    }
    const float share = measured_ ? 1.0F / static_cast<float>(rows_ * inner_) : 0.0F;
    ForEach([&](size_t at, size_t c) {
      const float slope = node.In(1).numbers[c] * inverse_[c] *
                          (back[at] - (sums_[c] + standard_[at] * products_[c]) * share);
      target.to[at] = target.add ? target.to[at] + slope : slope;
    });
  }
  bool IsFunction() const override { return false; }

 private:
  // body(element, channel), in the order of the elements.
  template <typename Body>
  void ForEach(Body body) const {
    size_t at = 0;
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t c = 0; c < channels_; ++c) {
        for (size_t i = 0; i < inner_; ++i) {
          body(at++, c);
        }
      }
    }
  }
  void Measure(const float* x, float count) {
    std::fill(mean_.begin(), mean_.end(), 0.0F);
    std::fill(variance_.begin(), variance_.end(), 0.0F);
    ForEach([&](size_t at, size_t c) { mean_[c] += x[at]; });
    for (float& mean : mean_) {
      mean /= count;
    }
    ForEach([&](size_t at, size_t c) {
      const float distance = x[at] - mean_[c];
      variance_[c] += distance * distance;
    });
    for (float& variance : variance_) {
      variance /= count;
    }
  }
  void AddChannels(const OperatorContext& node, size_t k, const std::vector<float>& values) const {
    if (float* to = node.Zeroed(k)) {
      for (size_t c = 0; c < channels_; ++c) {
        to[c] += values[c];
      }
    }
  }

  size_t rows_ = 0;
  size_t channels_ = 0;
  size_t inner_ = 0;
  float epsilon_ = 0;
  bool measured_ = false;
  std::vector<float> mean_;
  std::vector<float> variance_;
  std::vector<float> inverse_;
  std::vector<float> standard_;
  std::vector<float> sums_;
  std::vector<float> products_;
};

// In training drops a fraction of the numbers and scales the others. Which ones depends only on
// (seed, step, node, position).
class Dropout final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    if (node.Has(1)) {
      RETURN_IF_ERROR(node.NeedFloat(1));
      if (node.In(1).size() != 1) {
        return InvalidArgument("the ratio must be one number");
      }
    }
    return node.Shaped(node.In(0).shape);
  }
  void Forward(const OperatorContext& node) override {
    const size_t n = node.Out().count();
    const float* x = node.In(0).numbers;
    float* y = node.Out().numbers;
    const float ratio = node.Has(1) ? *node.In(1).numbers : node.attributes->Number("ratio", 0.5F);
    // A ratio outside [0, 1) drops nothing, or everything.
    const float scale = ratio < 1 ? 1.0F / (1.0F - ratio) : 0.0F;
    dropped_ = node.train && ratio > 0;
    if (!dropped_) {
      std::copy_n(x, n, y);
      return;
    }
    keep_.resize(n);
    for (size_t i = 0; i < n; ++i) {
      const float uniform = static_cast<float>(HashInteger(node.key + i) >> 40) * 0x1.0p-24F;
      keep_[i] = uniform < ratio ? 0.0F : scale;
      y[i] = x[i] * keep_[i];
    }
  }
  void Backward(const OperatorContext& node) override {
    const GradientTarget target = node.Target(0);
    const float* back = node.Back();
    for (size_t i = 0, n = node.Out().count(); target && i < n; ++i) {
      const float own = dropped_ ? back[i] * keep_[i] : back[i];
      target.to[i] = target.add ? target.to[i] + own : own;
    }
  }
  bool IsFunction() const override { return false; }

 private:
  bool dropped_ = false;
  std::vector<float> keep_;
};

}  // namespace

std::span<const OperatorEntry> NormalisationOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Softmax", 1, 1, 1, "axis", MakeOperator<Softmax<false>>},
      {"LogSoftmax", 1, 1, 1, "axis", MakeOperator<Softmax<true>>},
      {"LayerNormalization", 2, 3, 1, "axis epsilon stash_type", MakeOperator<LayerNormalization>},
      {"BatchNormalization", 5, 5, 1, "epsilon momentum training_mode",
       MakeOperator<BatchNormalization>},
      {"Dropout", 1, 3, 1, "ratio seed", MakeOperator<Dropout>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
