#pragma once

#include <bit>
#include <cstdint>

// Exponential and logarithm from additions, multiplications and divisions only, in a fixed order:
// the same bits on every machine, which the C library does not promise. Files that include this are
// compiled with -ffp-contract=off. Within 2 units of the last place.
namespace sluice::models::histogram {

// Arguments beyond +-700 are clamped; NaN becomes the largest result.
inline double Exp(double x) {
  x = x < 700 ? x : 700;
  x = x > -700 ? x : -700;
  constexpr double kShift = 0x1.8p52;  // to the nearest whole number, in the lowest bits
  const double shifted = x * 1.4426950408889634 + kShift;
  const double k = shifted - kShift;
  const double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
  double y = 1.0 / 6227020800.0;
  y = y * r + 1.0 / 479001600.0;
  y = y * r + 1.0 / 39916800.0;
  y = y * r + 1.0 / 3628800.0;
  y = y * r + 1.0 / 362880.0;
  y = y * r + 1.0 / 40320.0;
  y = y * r + 1.0 / 5040.0;
  y = y * r + 1.0 / 720.0;
  y = y * r + 1.0 / 120.0;
  y = y * r + 1.0 / 24.0;
  y = y * r + 1.0 / 6.0;
  y = y * r + 0.5;
  y = y * r + 1.0;
  y = y * r + 1.0;
  return y * std::bit_cast<double>((std::bit_cast<uint64_t>(shifted) + 1023U) << 52U);
}

// Of a normal x > 0.
inline double Log(double x) {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int64_t>(bits >> 52U) - 1023;
  double m = std::bit_cast<double>((bits & 0xfffffffffffffU) | 0x3ff0000000000000U);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double y = 1.0 / 23;
  for (int odd = 21; odd >= 3; odd -= 2) {
    y = y * z + 1.0 / odd;
  }
  const auto e = static_cast<double>(exponent);
  return e * 6.93147180369123816490e-01 +
         (2 * s + (2 * s * z * y + e * 1.90821492927058770002e-10));
}

// log(1 + x) of x > -1.
inline double Log1p(double x) {
  const double one = 1 + x;
  return one == 1 ? x : Log(one) * (x / (one - 1));
}

inline double Sigmoid(double x) {
  return 1 / (1 + Exp(-x));
}

}  // namespace sluice::models::histogram
