#pragma once

#include "models/kernels/kernels.h"
#include "models/kernels/vector_internal.h"

// Activations, losses and row copies. Included only by kernels_<set>.cc: see vector_internal.h.
namespace sluice::models {
namespace {

// exp by range reduction to [-ln2/2, ln2/2] and a polynomial (Cephes expf).
inline Vector ExpOf(Vector x) {
  x = Min(Broadcast(87.0f), Max(Broadcast(-87.0f), x));  // in this order NaN stays NaN
  const IntVector exponent = RoundToInt(x * Broadcast(1.44269504088896341f));
  const Vector n = ToFloat(exponent);
  x = MultiplyAdd(n, Broadcast(-0.693359375f), x);
  x = MultiplyAdd(n, Broadcast(2.12194440e-4f), x);
  Vector y = Broadcast(1.9875691500e-4f);
  y = MultiplyAdd(y, x, Broadcast(1.3981999507e-3f));
  y = MultiplyAdd(y, x, Broadcast(8.3334519073e-3f));
  y = MultiplyAdd(y, x, Broadcast(4.1665795894e-2f));
  y = MultiplyAdd(y, x, Broadcast(1.6666665459e-1f));
  y = MultiplyAdd(y, x, Broadcast(5.0000001201e-1f));
  y = MultiplyAdd(y, x * x, Add(x, Broadcast(1.0f)));
  return y * PowerOfTwo(exponent);
}

inline Vector Absolute(Vector x) {
  return Max(Negate(x), x);
}

// (log(1 + f) - f + f^2 / 2) / f^3 for f near 0 (Cephes logf).
inline Vector LogPolynomial(Vector f) {
  Vector y = Broadcast(7.0376836292e-2f);
  y = MultiplyAdd(y, f, Broadcast(-1.1514610310e-1f));
  y = MultiplyAdd(y, f, Broadcast(1.1676998740e-1f));
  y = MultiplyAdd(y, f, Broadcast(-1.2420140846e-1f));
  y = MultiplyAdd(y, f, Broadcast(1.4249322787e-1f));
  y = MultiplyAdd(y, f, Broadcast(-1.6668057665e-1f));
  y = MultiplyAdd(y, f, Broadcast(2.0000714765e-1f));
  y = MultiplyAdd(y, f, Broadcast(-2.4999993993e-1f));
  y = MultiplyAdd(y, f, Broadcast(3.3333331174e-1f));
  return y;
}

// log(1 + e) for e in [0, 1] (Cephes logf): above sqrt(2) - 1, uses half of 1 + e.
inline Vector Log1pOfUnit(Vector e) {
  const Vector above = e - Broadcast(0.41421356237f);
  const Vector f = SelectPositive(above, MultiplyAdd(e, Broadcast(0.5f), Broadcast(-0.5f)), e);
  const Vector square = f * f;
  Vector y = LogPolynomial(f) * f * square;
  y = MultiplyAdd(square, Broadcast(-0.5f), y);
  y = Add(f, y);
  return SelectPositive(above, Add(y, Broadcast(0.693147180559945f)), y);
}

// Cephes logf: below sqrt(1/2), uses twice the mantissa.
inline Vector LogOf(Vector x) {
  const Vector denormal = Broadcast(1.17549435e-38f) - x;  // positive if it is one
  const Vector normal = SelectPositive(denormal, x * Broadcast(4294967296.0f), x);
  const Vector mantissa = MantissaOf(normal);
  const Vector below = Broadcast(0.707106781186547524f) - mantissa;
  const Vector shift = Add(SelectPositive(denormal, Broadcast(32.0f), Broadcast(0.0f)),
                           SelectPositive(below, Broadcast(1.0f), Broadcast(0.0f)));
  const Vector exponent = ExponentOf(normal) - shift;
  const Vector f = SelectPositive(below, Add(mantissa, mantissa), mantissa) - Broadcast(1.0f);
  const Vector square = f * f;
  Vector y = LogPolynomial(f) * f * square;
  y = MultiplyAdd(exponent, Broadcast(-2.12194440e-4f), y);
  y = MultiplyAdd(square, Broadcast(-0.5f), y);
  y = MultiplyAdd(exponent, Broadcast(0.693359375f), Add(f, y));
  y = SelectPositive(x - Broadcast(3.4028234e38f), x, y);  // infinity
  const Vector undefined =
      SelectPositive(Negate(x), Broadcast(__builtin_nanf("")), Broadcast(-1.0f) / (x * x));
  return SelectPositive(x, y, undefined);
}

// N. Juffa's polynomials: in x near 0, of log(1 - erf(|x|)) elsewhere.
inline Vector ErfOf(Vector x) {
  const Vector magnitude = Absolute(x);
  const Vector square = x * x;
  Vector low = Broadcast(-5.96761703e-4f);
  low = MultiplyAdd(low, square, Broadcast(4.99119423e-3f));
  low = MultiplyAdd(low, square, Broadcast(-2.67681349e-2f));
  low = MultiplyAdd(low, square, Broadcast(1.12819925e-1f));
  low = MultiplyAdd(low, square, Broadcast(-3.76125336e-1f));
  low = MultiplyAdd(low, square, Broadcast(1.28379166e-1f));
  low = MultiplyAdd(low, x, x);
  const Vector t = Min(Broadcast(10.0f), magnitude);  // beyond, it is 1; NaN is kept
  const Vector t_square = t * t;
  Vector high = MultiplyAdd(Broadcast(-1.72853470e-5f), t, Broadcast(3.83197126e-4f));
  const Vector next = MultiplyAdd(Broadcast(-3.88396438e-3f), t, Broadcast(2.42546219e-2f));
  high = MultiplyAdd(high, t_square, next);
  high = MultiplyAdd(high, t, Broadcast(-1.06777877e-1f));
  high = MultiplyAdd(high, t, Broadcast(-6.34846687e-1f));
  high = MultiplyAdd(high, t, Broadcast(-1.28717512e-1f));
  high = MultiplyAdd(high, t, Negate(t));
  high = Broadcast(1.0f) - ExpOf(high);
  const Vector with_sign = SelectPositive(x, high, Negate(high));
  return SelectPositive(magnitude - Broadcast(0.927734375f), with_sign, low);
}

inline Vector PowOf(Vector x, Vector y) {
  const Vector zero = Broadcast(0.0f);
  const Vector one = Broadcast(1.0f);
  const Vector magnitude = Absolute(x);
  const Vector power = ExpOf(y * LogOf(magnitude));
  const Vector of_zero =
      SelectPositive(y, zero, SelectPositive(Negate(y), Broadcast(__builtin_inff()), one));
  const Vector of_magnitude = SelectPositive(magnitude, power, Add(of_zero, magnitude));
  // Beyond 2^24 every float is an even number.
  const Vector exponent = Min(Broadcast(16777216.0f), Max(Broadcast(-16777216.0f), y));
  const Vector half = exponent * Broadcast(0.5f);
  const Vector fraction = Absolute(exponent - ToFloat(RoundToInt(exponent)));
  const Vector odd = Absolute(half - ToFloat(RoundToInt(half)));
  const Vector with_sign = SelectPositive(odd, Negate(of_magnitude), of_magnitude);
  const Vector of_negative = SelectPositive(fraction, Broadcast(__builtin_nanf("")), with_sign);
  return SelectPositive(Negate(x), of_negative, of_magnitude);
}

inline Vector SigmoidOf(Vector x) {
  return Broadcast(1.0f) / Add(Broadcast(1.0f), ExpOf(Negate(x)));
}

// A polynomial near zero, where 1 - 2 / (exp(2x) + 1) would cancel (Cephes tanhf).
inline Vector TanhOf(Vector x) {
  const Vector square = x * x;
  Vector y = Broadcast(-5.70498872745e-3f);
  y = MultiplyAdd(y, square, Broadcast(2.06390887954e-2f));
  y = MultiplyAdd(y, square, Broadcast(-5.37397155531e-2f));
  y = MultiplyAdd(y, square, Broadcast(1.33314422036e-1f));
  y = MultiplyAdd(y, square, Broadcast(-3.33332819422e-1f));
  const Vector small = MultiplyAdd(y * square, x, x);
  const Vector magnitude = Absolute(x);
  const Vector large =
      Broadcast(1.0f) - Broadcast(2.0f) / Add(ExpOf(Add(magnitude, magnitude)), Broadcast(1.0f));
  const Vector with_sign = SelectPositive(x, large, Negate(large));
  return SelectPositive(magnitude - Broadcast(0.625f), with_sign, small);
}

// The tanh form of GELU: within 5e-4 of the erf form.
constexpr float kGeluFactor = 0.7978845608f;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715f;

inline Vector GeluTanh(Vector x) {
  const Vector inner = MultiplyAdd(x * x * x, Broadcast(kGeluCubic), x);
  return TanhOf(inner * Broadcast(kGeluFactor));
}

// values[i] = function(values[i]).
template <typename Function>
inline void Map(float* values, size_t n, Function function) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(values + i, function(Load(values + i)));
  }
  if (i < n) {
    StoreFirst(values + i, function(LoadFirst(values + i, n - i)), n - i);
  }
}
// to[i] = function(a[i], to[i]).
template <typename Function>
inline void MapPairs(const float* a, float* to, size_t n, Function function) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(to + i, function(Load(a + i), Load(to + i)));
  }
  if (i < n) {
    StoreFirst(to + i, function(LoadFirst(a + i, n - i), LoadFirst(to + i, n - i)), n - i);
  }
}

void Exp(float* values, size_t n) {
  Map(values, n, [](Vector x) { return ExpOf(x); });
}
void Log(float* values, size_t n) {
  Map(values, n, [](Vector x) { return LogOf(x); });
}
void Erf(float* values, size_t n) {
  Map(values, n, [](Vector x) { return ErfOf(x); });
}
void Pow(const float* bases, const float* exponents, float* powers, size_t n) {
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Store(powers + i, PowOf(Load(bases + i), Load(exponents + i)));
  }
  if (i < n) {
    const Vector power = PowOf(LoadFirst(bases + i, n - i), LoadFirst(exponents + i, n - i));
    StoreFirst(powers + i, power, n - i);
  }
}
void Relu(float* values, size_t n) {
  Map(values, n, [](Vector x) { return Max(Broadcast(0.0f), x); });
}
constexpr float kLeak = 0.2f;  // as tf.nn.leaky_relu
void LeakyRelu(float* values, size_t n) {
  Map(values, n, [](Vector x) { return Max(Broadcast(kLeak) * x, x); });
}
void Elu(float* values, size_t n, float scale, float alpha) {
  Map(values, n, [scale, alpha](Vector x) {
    const Vector below = Broadcast(scale * alpha) * (ExpOf(Min(Broadcast(0.0f), x)) - Broadcast(1));
    return SelectPositive(x, Broadcast(scale) * x, below);
  });
}
void Tanh(float* values, size_t n) {
  Map(values, n, [](Vector x) { return TanhOf(x); });
}
void Sigmoid(float* values, size_t n) {
  Map(values, n, [](Vector x) { return SigmoidOf(x); });
}
void Gelu(const float* inputs, float* outputs, size_t n) {
  MapPairs(inputs, outputs, n, [](Vector x, Vector) {
    return Broadcast(0.5f) * x * Add(Broadcast(1.0f), GeluTanh(x));
  });
}

void ReluGradient(const float* outputs, float* gradient, size_t n) {
  MapPairs(outputs, gradient, n,
           [](Vector y, Vector g) { return SelectPositive(y, g, Broadcast(0.0f)); });
}
void LeakyReluGradient(const float* outputs, float* gradient, size_t n) {
  MapPairs(outputs, gradient, n,
           [](Vector y, Vector g) { return SelectPositive(y, g, g * Broadcast(kLeak)); });
}
void EluGradient(const float* outputs, float* gradient, size_t n, float scale, float alpha) {
  MapPairs(outputs, gradient, n, [scale, alpha](Vector y, Vector g) {
    return g * SelectPositive(y, Broadcast(scale), Add(y, Broadcast(scale * alpha)));
  });
}
void TanhGradient(const float* outputs, float* gradient, size_t n) {
  MapPairs(outputs, gradient, n, [](Vector y, Vector g) { return g * (Broadcast(1.0f) - y * y); });
}
void SigmoidGradient(const float* outputs, float* gradient, size_t n) {
  MapPairs(outputs, gradient, n, [](Vector y, Vector g) { return g * y * (Broadcast(1.0f) - y); });
}
void GeluGradient(const float* inputs, float* gradient, size_t n) {
  MapPairs(inputs, gradient, n, [](Vector x, Vector g) {
    const Vector t = GeluTanh(x);
    const Vector half = Broadcast(0.5f);
    const Vector slope =
        Broadcast(kGeluFactor) * MultiplyAdd(x * x, Broadcast(3.0f * kGeluCubic), Broadcast(1.0f));
    const Vector derivative =
        MultiplyAdd(half * x * (Broadcast(1.0f) - t * t), slope, half * Add(Broadcast(1.0f), t));
    return g * derivative;
  });
}

inline void LogisticOf(Vector z, Vector y, Vector* loss, Vector* probability) {
  const Vector zero = Broadcast(0.0f);
  const Vector one = Broadcast(1.0f);
  const Vector e = ExpOf(Negate(Absolute(z)));
  const Vector inverse = one / Add(one, e);
  *probability = SelectPositive(z, inverse, e * inverse);
  *loss = Add(Log1pOfUnit(e), Max(zero, z) - z * y);
}

void Logistic(const float* logits, const float* labels, float* losses, float* probabilities,
              size_t n) {
  Vector loss;
  Vector probability;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    LogisticOf(Load(logits + i), Load(labels + i), &loss, &probability);
    Store(losses + i, loss);
    Store(probabilities + i, probability);
  }
  if (i < n) {
    LogisticOf(LoadFirst(logits + i, n - i), LoadFirst(labels + i, n - i), &loss, &probability);
    StoreFirst(losses + i, loss, n - i);
    StoreFirst(probabilities + i, probability, n - i);
  }
}

// Row copies: the compiler turns a loop of known width into whole registers.
struct Copy {
  static void Move(const float* from, float* to) { *to = *from; }
};
struct Accumulate {
  static void Move(const float* from, float* to) { *to += *from; }
};

template <typename How, size_t kWidth>
inline void MoveRow(const float* __restrict from, float* __restrict to, size_t width) {
  const size_t n = kWidth == 0 ? width : kWidth;
  for (size_t i = 0; i < n; ++i) {
    How::Move(from + i, to + i);
  }
}

template <typename How, size_t kWidth>
void Gather(const float* rows, size_t rows_stride, const uint32_t* positions, size_t count,
            size_t width, float* to, size_t to_stride) {
  for (size_t r = 0; r < count; ++r) {
    MoveRow<How, kWidth>(rows + positions[r] * rows_stride, to + r * to_stride, width);
  }
}

template <size_t kWidth>
void Scatter(const float* from, size_t from_stride, const uint32_t* positions, size_t count,
             size_t width, float* rows, size_t rows_stride) {
  for (size_t r = 0; r < count; ++r) {
    MoveRow<Accumulate, kWidth>(from + r * from_stride, rows + positions[r] * rows_stride, width);
  }
}

template <typename How>
void GatherAny(const float* rows, size_t rows_stride, const uint32_t* positions, size_t count,
               size_t width, float* to, size_t to_stride) {
  switch (width) {
    case 1:
      return Gather<How, 1>(rows, rows_stride, positions, count, width, to, to_stride);
    case 4:
      return Gather<How, 4>(rows, rows_stride, positions, count, width, to, to_stride);
    case 8:
      return Gather<How, 8>(rows, rows_stride, positions, count, width, to, to_stride);
    case 16:
      return Gather<How, 16>(rows, rows_stride, positions, count, width, to, to_stride);
    case 64:
      return Gather<How, 64>(rows, rows_stride, positions, count, width, to, to_stride);
    default:
      return Gather<How, 0>(rows, rows_stride, positions, count, width, to, to_stride);
  }
}

void ScatterAny(const float* from, size_t from_stride, const uint32_t* positions, size_t count,
                size_t width, float* rows, size_t rows_stride) {
  switch (width) {
    case 1:
      return Scatter<1>(from, from_stride, positions, count, width, rows, rows_stride);
    case 4:
      return Scatter<4>(from, from_stride, positions, count, width, rows, rows_stride);
    case 8:
      return Scatter<8>(from, from_stride, positions, count, width, rows, rows_stride);
    case 16:
      return Scatter<16>(from, from_stride, positions, count, width, rows, rows_stride);
    case 64:
      return Scatter<64>(from, from_stride, positions, count, width, rows, rows_stride);
    default:
      return Scatter<0>(from, from_stride, positions, count, width, rows, rows_stride);
  }
}

}  // namespace
}  // namespace sluice::models
