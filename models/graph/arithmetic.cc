#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/graph/broadcast_internal.h"
#include "models/graph/operator_internal.h"

// Elementwise functions of two or more inputs, which are broadcast to one shape.
namespace sluice::models::graph {
namespace {

// Integer arithmetic wraps around; a division by 0 gives 0.
int64_t Wrapped(uint64_t value) {
  return static_cast<int64_t>(value);
}

// Each has the value for floats and integers, and the partial derivatives by both inputs.
struct Add {
  static float Of(float a, float b) { return a + b; }
  static int64_t Of(int64_t a, int64_t b) {
    return Wrapped(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static float SlopeA(float, float) { return 1; }
  static float SlopeB(float, float) { return 1; }
};
struct Sub {
  static float Of(float a, float b) { return a - b; }
  static int64_t Of(int64_t a, int64_t b) {
    return Wrapped(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
  static float SlopeA(float, float) { return 1; }
  static float SlopeB(float, float) { return -1; }
};
struct Mul {
  static float Of(float a, float b) { return a * b; }
  static int64_t Of(int64_t a, int64_t b) {
    return Wrapped(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static float SlopeA(float, float b) { return b; }
  static float SlopeB(float a, float) { return a; }
};
struct Div {
  static float Of(float a, float b) { return a / b; }
  static int64_t Of(int64_t a, int64_t b) {
    if (b == 0) {
      return 0;
    }
    return b == -1 ? Wrapped(-static_cast<uint64_t>(a)) : a / b;
  }
  static float SlopeA(float, float b) { return 1.0F / b; }
  static float SlopeB(float a, float b) { return -a / (b * b); }
};

template <typename Function>
class Arithmetic final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    const Tensor& a = node.In(0);
    const Tensor& b = node.In(1);
    if (a.type != b.type || (a.type != ElementType::kFloat && a.type != ElementType::kInteger)) {
      return InvalidArgument(
                 fmt::format("{} and {} cannot be combined", TypeText(a.type), TypeText(b.type)))
          .Hint("say Cast");
    }
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(a.shape, b.shape));
    broadcast_ = Broadcast(shape, {&a.shape, &b.shape});
    return node.Shaped(std::move(shape), a.type);
  }
  void Forward(const OperatorContext& node) override {
    const Tensor& a = node.In(0);
    const Tensor& b = node.In(1);
    if (a.type == ElementType::kFloat) {
      MapPlaces(broadcast_, a.numbers, b.numbers, node.Out().numbers,
                [](float x, float y) { return Function::Of(x, y); });
    } else {
      MapPlaces(broadcast_, a.integers, b.integers, node.Out().integers,
                [](int64_t x, int64_t y) { return Function::Of(x, y); });
    }
  }
  void Backward(const OperatorContext& node) override {
    Learn(node, 0, [](float x, float y) { return Function::SlopeA(x, y); });
    Learn(node, 1, [](float x, float y) { return Function::SlopeB(x, y); });
  }

 private:
  template <typename Slope>
  void Learn(const OperatorContext& node, size_t k, Slope slope) const {
    const float* back = node.Back();
    const float* a = node.In(0).numbers;
    const float* b = node.In(1).numbers;
    WithSteps(broadcast_.step(0), broadcast_.step(1), [&](auto step_a, auto step_b) {
      if (node.In(k).size() == node.Out().size()) {
        const GradientTarget target = node.Target(k);
        if (!target) {
          return;
        }
        broadcast_.ForEachRun([&](size_t place, size_t n, const auto& first) {
          const float* own_a = a + first[0];
          const float* own_b = b + first[1];
          const float* own_back = back + place;
          float* to = target.to + place;
          if (target.add) {
            for (size_t i = 0; i < n; ++i) {
              to[i] += own_back[i] * slope(own_a[i * step_a], own_b[i * step_b]);
            }
          } else {
            for (size_t i = 0; i < n; ++i) {
              to[i] = own_back[i] * slope(own_a[i * step_a], own_b[i * step_b]);
            }
          }
        });
      } else if (float* to = node.Zeroed(k)) {
        AddPlaces(broadcast_, k, to, [&](size_t place, size_t i, const auto& first) {
          return back[place] * slope(a[static_cast<size_t>(first[0]) + i * step_a],
                                     b[static_cast<size_t>(first[1]) + i * step_b]);
        });
      }
    });
  }

  Broadcast broadcast_;
};

// The exponents that models commonly use are computed as exact products and roots, all others by
// the kernels.
class Pow final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    const Tensor& exponent = node.In(1);
    if (exponent.type != ElementType::kFloat && exponent.type != ElementType::kInteger) {
      return InvalidArgument(
          fmt::format("an exponent must be a number, not {}", TypeText(exponent.type)));
    }
    ASSIGN_OR_RETURN(Shape shape, BroadcastShape(node.In(0).shape, exponent.shape));
    broadcast_ = Broadcast(shape, {&node.In(0).shape, &exponent.shape});
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    const size_t n = node.Out().count();
    const Tensor& exponent = node.In(1);
    exponents_.resize(exponent.count());
    for (size_t i = 0; i < exponents_.size(); ++i) {
      exponents_[i] = exponent.type == ElementType::kFloat
                          ? exponent.numbers[i]
                          : static_cast<float>(exponent.integers[i]);
    }
    bases_.resize(n);
    powers_.resize(n);
    MapPlaces(broadcast_, node.In(0).numbers, exponents_.data(), bases_.data(),
              [](float x, float) { return x; });
    MapPlaces(broadcast_, node.In(0).numbers, exponents_.data(), powers_.data(),
              [](float, float y) { return y; });
    Power(*node.kernels, powers_, node.Out().numbers);
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const size_t n = node.Out().count();
    if (float* to = node.Zeroed(0)) {
      lower_.resize(n);
      products_.resize(n);
      for (size_t i = 0; i < n; ++i) {
        lower_[i] = powers_[i] - 1.0F;
      }
      Power(*node.kernels, lower_, products_.data());
      AddPlaces(broadcast_, 0, to, [&](size_t place, size_t, const auto&) {
        return powers_[place] == 0 ? 0.0F : back[place] * powers_[place] * products_[place];
      });
    }
    if (node.In(1).type == ElementType::kFloat) {
      if (float* to = node.Zeroed(1)) {
        products_.assign(bases_.begin(), bases_.end());
        node.kernels->log(products_.data(), n);
        const float* values = node.Out().numbers;
        AddPlaces(broadcast_, 1, to, [&](size_t place, size_t, const auto&) {
          return bases_[place] == 0 ? 0.0F : back[place] * values[place] * products_[place];
        });
      }
    }
  }

 private:
  // to = bases_ to the power of `powers`.
  void Power(const Kernels& kernels, const std::vector<float>& powers, float* to) const {
    const size_t n = bases_.size();
    const bool one = std::all_of(powers.begin(), powers.end(),
                                 [&](float power) { return power == powers.front(); });
    const float power = n > 0 && one ? powers.front() : std::numeric_limits<float>::quiet_NaN();
    const auto each = [&](auto function) {
      for (size_t i = 0; i < n; ++i) {
        to[i] = function(bases_[i]);
      }
    };
    if (power == 1) {
      each([](float x) { return x; });
    } else if (power == 2) {
      each([](float x) { return x * x; });
    } else if (power == 3) {
      each([](float x) { return x * x * x; });
    } else if (power == 0.5F) {
      each([](float x) { return std::sqrt(x); });
    } else if (power == -0.5F) {
      each([](float x) { return 1.0F / std::sqrt(x); });
    } else if (power == -1) {
      each([](float x) { return 1.0F / x; });
    } else {
      kernels.pow(bases_.data(), powers.data(), to, n);
    }
  }

  Broadcast broadcast_;
  std::vector<float> exponents_;
  std::vector<float> bases_;
  std::vector<float> powers_;
  std::vector<float> lower_;
  std::vector<float> products_;
};

// The minimum or maximum of the inputs, NaN if one of them is NaN. The gradient goes to the first
// input that has the value.
template <bool kLeast>
class Extreme final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    Shape shape;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      RETURN_IF_ERROR(node.NeedFloat(k));
      ASSIGN_OR_RETURN(shape, BroadcastShape(shape, node.In(k).shape));
    }
    broadcasts_.clear();
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      broadcasts_.emplace_back(shape, std::initializer_list<const Shape*>{&node.In(k).shape});
    }
    return node.Shaped(std::move(shape));
  }
  void Forward(const OperatorContext& node) override {
    float* y = node.Out().numbers;
    winners_.assign(node.Out().count(), 0);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const float* x = node.In(k).numbers;
      const size_t step = broadcasts_[k].step(0);
      broadcasts_[k].ForEachRun([&](size_t place, size_t n, const auto& first) {
        for (size_t i = 0; i < n; ++i) {
          const float own = x[static_cast<size_t>(first[0]) + i * step];
          float& best = y[place + i];
          if (k == 0 || (kLeast ? own < best : own > best) || std::isnan(own)) {
            best = own;
            winners_[place + i] = static_cast<uint32_t>(k);
          }
        }
      });
    }
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      if (float* to = node.Zeroed(k)) {
        AddPlaces(broadcasts_[k], 0, to, [&](size_t place, size_t, const auto&) {
          return winners_[place] == k ? back[place] : 0.0F;
        });
      }
    }
  }

 private:
  std::vector<Broadcast> broadcasts_;
  std::vector<uint32_t> winners_;
};

}  // namespace

std::span<const OperatorEntry> ArithmeticOperators() {
  constexpr size_t kMaxOperands = 64;
  static constexpr OperatorEntry kEntries[] = {
      {"Add", 2, 2, 1, "", MakeOperator<Arithmetic<Add>>},
      {"Sub", 2, 2, 1, "", MakeOperator<Arithmetic<Sub>>},
      {"Mul", 2, 2, 1, "", MakeOperator<Arithmetic<Mul>>},
      {"Div", 2, 2, 1, "", MakeOperator<Arithmetic<Div>>},
      {"Pow", 2, 2, 1, "", MakeOperator<Pow>},
      {"Min", 1, kMaxOperands, 1, "", MakeOperator<Extreme<true>>},
      {"Max", 1, kMaxOperands, 1, "", MakeOperator<Extreme<false>>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
