#include <algorithm>
#include <cmath>
#include <limits>

#include "models/graph/operator_internal.h"

// Elementwise functions of one input.
namespace sluice::models::graph {
namespace {

// A function has Values, and Slope, which writes the gradient of the input to `to`: the derivative
// times the gradient of the output. `Configure` reads its attributes.
struct Configured {
  void Configure(const Attributes& /*attributes*/) {}
};

template <typename Body>
void Each(const float* x, float* y, size_t n, Body body) {
  for (size_t i = 0; i < n; ++i) {
    y[i] = body(x[i]);
  }
}
template <typename Body>
void EachSlope(const float* of, const float* gradient, float* to, size_t n, Body body) {
  for (size_t i = 0; i < n; ++i) {
    to[i] = gradient[i] * body(of[i]);
  }
}
// For kernels that work in place.
void Copy(const float* from, float* to, size_t n) {
  if (from != to) {
    std::copy_n(from, n, to);
  }
}

struct Neg : Configured {
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [](float a) { return -a; });
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [](float) { return -1.0F; });
  }
};

struct Sqrt : Configured {
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [](float a) { return std::sqrt(a); });
  }
  void Slope(const Kernels&, const float*, const float* y, const float* g, float* to, size_t n) {
    EachSlope(y, g, to, n, [](float a) { return 0.5F / a; });
  }
};

struct Reciprocal : Configured {
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [](float a) { return 1.0F / a; });
  }
  void Slope(const Kernels&, const float*, const float* y, const float* g, float* to, size_t n) {
    EachSlope(y, g, to, n, [](float a) { return -a * a; });
  }
};

struct Exp : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.exp(y, n);
  }
  void Slope(const Kernels&, const float*, const float* y, const float* g, float* to, size_t n) {
    EachSlope(y, g, to, n, [](float a) { return a; });
  }
};

struct Log : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.log(y, n);
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [](float a) { return 1.0F / a; });
  }
};

struct Abs : Configured {
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [](float a) { return std::fabs(a); });
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [](float a) { return a > 0 ? 1.0F : (a < 0 ? -1.0F : a); });
  }
};

struct Erf : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.erf(y, n);
  }
  void Slope(const Kernels& kernels, const float* x, const float*, const float* g, float* to,
             size_t n) {
    constexpr float kTwoBySqrtPi = 1.1283791671F;
    Each(x, to, n, [](float a) { return -a * a; });
    kernels.exp(to, n);
    for (size_t i = 0; i < n; ++i) {
      to[i] *= kTwoBySqrtPi * g[i];
    }
  }
};

struct Relu : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.relu(y, n);
  }
  void Slope(const Kernels& kernels, const float*, const float* y, const float* g, float* to,
             size_t n) {
    Copy(g, to, n);
    kernels.relu_gradient(y, to, n);
  }
};

struct LeakyRelu {
  float alpha = 0.01F;
  void Configure(const Attributes& attributes) { alpha = attributes.Number("alpha", 0.01F); }
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [this](float a) { return a < 0 ? alpha * a : a; });
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [this](float a) { return a < 0 ? alpha : 1.0F; });
  }
};

// Elu and Selu: scale x, or scale alpha (exp(x) - 1) below 0.
struct Elu {
  float alpha = 1;
  float scale = 1;
  void Configure(const Attributes& attributes) { alpha = attributes.Number("alpha", 1); }
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.elu(y, n, scale, alpha);
  }
  void Slope(const Kernels& kernels, const float* x, const float* y, const float* g, float* to,
             size_t n) {
    if (alpha > 0 && scale > 0) {
      Copy(g, to, n);
      return kernels.elu_gradient(y, to, n, scale, alpha);
    }
    // With a negative alpha, the output does not show on which side the input was.
    Each(x, to, n, [](float a) { return std::min(a, 0.0F); });
    kernels.exp(to, n);
    for (size_t i = 0; i < n; ++i) {
      to[i] = g[i] * (x[i] > 0 ? scale : scale * alpha * to[i]);
    }
  }
};
struct Selu : Elu {
  void Configure(const Attributes& attributes) {
    alpha = attributes.Number("alpha", 1.67326319217681884765625F);
    scale = attributes.Number("gamma", 1.05070102214813232421875F);
  }
};

struct Gelu {
  bool tanh_form = false;
  void Configure(const Attributes& attributes) {
    tanh_form = attributes.Text("approximate", "none") == "tanh";
  }
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    if (tanh_form) {
      return kernels.gelu(x, y, n);
    }
    Each(x, y, n, [](float a) { return a * kSqrtHalf; });
    kernels.erf(y, n);
    for (size_t i = 0; i < n; ++i) {
      y[i] = 0.5F * x[i] * (1.0F + y[i]);
    }
  }
  void Slope(const Kernels& kernels, const float* x, const float*, const float* g, float* to,
             size_t n) {
    if (tanh_form) {
      Copy(g, to, n);
      return kernels.gelu_gradient(x, to, n);
    }
    constexpr float kDensity = 0.3989422804F;  // 1 / sqrt(2 pi)
    density.resize(n);
    Each(x, density.data(), n, [](float a) { return -0.5F * a * a; });
    kernels.exp(density.data(), n);
    Each(x, to, n, [](float a) { return a * kSqrtHalf; });
    kernels.erf(to, n);
    for (size_t i = 0; i < n; ++i) {
      to[i] = g[i] * (0.5F * (1.0F + to[i]) + x[i] * kDensity * density[i]);
    }
  }
  static constexpr float kSqrtHalf = 0.7071067812F;
  std::vector<float> density;
};

struct Sigmoid : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.sigmoid(y, n);
  }
  void Slope(const Kernels& kernels, const float*, const float* y, const float* g, float* to,
             size_t n) {
    Copy(g, to, n);
    kernels.sigmoid_gradient(y, to, n);
  }
};

struct Tanh : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    Copy(x, y, n);
    kernels.tanh(y, n);
  }
  void Slope(const Kernels& kernels, const float*, const float* y, const float* g, float* to,
             size_t n) {
    Copy(g, to, n);
    kernels.tanh_gradient(y, to, n);
  }
};

// log(1 + exp(x)): the logistic loss of the label 0.
struct Softplus : Configured {
  void Values(const Kernels& kernels, const float* x, float* y, size_t n) {
    labels.assign(n, 0.0F);
    slopes.resize(n);
    kernels.logistic(x, labels.data(), y, slopes.data(), n);
  }
  void Slope(const Kernels& kernels, const float* x, const float*, const float* g, float* to,
             size_t n) {
    Copy(x, to, n);
    kernels.sigmoid(to, n);
    for (size_t i = 0; i < n; ++i) {
      to[i] *= g[i];
    }
  }
  std::vector<float> labels;
  std::vector<float> slopes;
};

struct Softsign : Configured {
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [](float a) { return a / (1.0F + std::fabs(a)); });
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [](float a) {
      const float root = 1.0F + std::fabs(a);
      return 1.0F / (root * root);
    });
  }
};

struct HardSigmoid {
  float alpha = 0.2F;
  float beta = 0.5F;
  void Configure(const Attributes& attributes) {
    alpha = attributes.Number("alpha", 0.2F);
    beta = attributes.Number("beta", 0.5F);
  }
  void Values(const Kernels&, const float* x, float* y, size_t n) {
    Each(x, y, n, [this](float a) {
      const float line = alpha * a + beta;
      return line < 0 ? 0.0F : (line > 1 ? 1.0F : line);  // NaN stays
    });
  }
  void Slope(const Kernels&, const float* x, const float*, const float* g, float* to, size_t n) {
    EachSlope(x, g, to, n, [this](float a) {
      const float line = alpha * a + beta;
      return line > 0 && line < 1 ? alpha : 0.0F;
    });
  }
};

template <typename Function>
class Elementwise final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    function_.Configure(*node.attributes);
    return node.Shaped(node.In(0).shape);
  }
  void Forward(const OperatorContext& node) override {
    function_.Values(*node.kernels, node.In(0).numbers, node.Out().numbers, node.Out().count());
  }
  void Backward(const OperatorContext& node) override {
    const float* back = node.Back();
    const GradientTarget target = node.Target(0);
    if (!target) {
      return;
    }
    const size_t n = node.Out().count();
    float* to = target.to;
    if (target.add) {
      product_.resize(n);
      to = product_.data();
    }
    function_.Slope(*node.kernels, node.In(0).numbers, node.Out().numbers, back, to, n);
    for (size_t i = 0; target.add && i < n; ++i) {
      target.to[i] += to[i];
    }
  }

 private:
  Function function_;
  std::vector<float> product_;
};

// Limits values to two bounds, which are inputs since opset 11; NaN stays NaN.
class Clip final : public Operator {
 public:
  Status Plan(const OperatorContext& node) override {
    RETURN_IF_ERROR(node.NeedFloat(0));
    for (const size_t k : {size_t{1}, size_t{2}}) {
      if (node.Has(k)) {
        RETURN_IF_ERROR(node.NeedFloat(k));
        if (node.In(k).size() != 1) {
          return InvalidArgument("a bound must be one number");
        }
      }
    }
    return node.Shaped(node.In(0).shape);
  }
  void Forward(const OperatorContext& node) override {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    low_ = node.Has(1) ? *node.In(1).numbers : node.attributes->Number("min", -kInfinity);
    high_ = node.Has(2) ? *node.In(2).numbers : node.attributes->Number("max", kInfinity);
    Each(node.In(0).numbers, node.Out().numbers, node.Out().count(), [this](float a) {
      const float above = a < low_ ? low_ : a;
      return above > high_ ? high_ : above;
    });
  }
  void Backward(const OperatorContext& node) override {
    const GradientTarget target = node.Target(0);
    if (!target) {
      return;
    }
    const float* x = node.In(0).numbers;
    const float* back = node.Back();
    for (size_t i = 0, n = node.Out().count(); i < n; ++i) {
      const float own = x[i] < low_ || x[i] > high_ ? 0.0F : back[i];
      target.to[i] = target.add ? target.to[i] + own : own;
    }
  }

 private:
  float low_ = 0;
  float high_ = 0;
};

template <typename Function>
constexpr auto kMake = &MakeOperator<Elementwise<Function>>;

}  // namespace

std::span<const OperatorEntry> ElementwiseOperators() {
  static constexpr OperatorEntry kEntries[] = {
      {"Sqrt", 1, 1, 1, "", kMake<Sqrt>},
      {"Reciprocal", 1, 1, 1, "", kMake<Reciprocal>},
      {"Exp", 1, 1, 1, "", kMake<Exp>},
      {"Log", 1, 1, 1, "", kMake<Log>},
      {"Abs", 1, 1, 1, "", kMake<Abs>},
      {"Erf", 1, 1, 1, "", kMake<Erf>},
      {"Relu", 1, 1, 1, "", kMake<Relu>},
      {"LeakyRelu", 1, 1, 1, "alpha", kMake<LeakyRelu>},
      {"Elu", 1, 1, 1, "alpha", kMake<Elu>},
      {"Selu", 1, 1, 1, "alpha gamma", kMake<Selu>},
      {"Gelu", 1, 1, 1, "approximate", kMake<Gelu>},
      {"Sigmoid", 1, 1, 1, "", kMake<Sigmoid>},
      {"Tanh", 1, 1, 1, "", kMake<Tanh>},
      {"Softplus", 1, 1, 1, "", kMake<Softplus>},
      {"Softsign", 1, 1, 1, "", kMake<Softsign>},
      {"HardSigmoid", 1, 1, 1, "alpha beta", kMake<HardSigmoid>},
      {"Neg", 1, 1, 1, "", kMake<Neg>},
      {"Clip", 1, 3, 1, "min max", MakeOperator<Clip>},
  };
  return kEntries;
}

}  // namespace sluice::models::graph
