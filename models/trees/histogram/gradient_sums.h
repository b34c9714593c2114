#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

// Sums whose bits do not depend on the order of what is added: the gradients and hessians of a
// round become whole numbers of one unit, a power of two that follows from the largest of them.
namespace sluice::models::histogram {

// Of some rows, in the units of a GradientScale. 2^33 rows fit.
struct alignas(16) GradientSum {
  int64_t gradient = 0;
  int64_t hessian = 0;

  // Sums of another process may be nonsense: they wrap around.
  void Add(const GradientSum& other) {
    gradient = Wrapped(static_cast<uint64_t>(gradient) + static_cast<uint64_t>(other.gradient));
    hessian = Wrapped(static_cast<uint64_t>(hessian) + static_cast<uint64_t>(other.hessian));
  }
  void Subtract(const GradientSum& other) {
    gradient = Wrapped(static_cast<uint64_t>(gradient) - static_cast<uint64_t>(other.gradient));
    hessian = Wrapped(static_cast<uint64_t>(hessian) - static_cast<uint64_t>(other.hessian));
  }
  bool empty() const { return gradient == 0 && hessian == 0; }
  bool operator==(const GradientSum&) const = default;

 private:
  static int64_t Wrapped(uint64_t sum) { return static_cast<int64_t>(sum); }
};

// The sums of every bin of every column over the rows of a node.
using Histogram = std::vector<GradientSum>;
inline void AddTo(const Histogram& from, Histogram* to) {
  for (size_t i = 0; i < from.size(); ++i) {
    (*to)[i].Add(from[i]);
  }
}

// The largest magnitudes of some rows. Merging is associative, commutative and idempotent.
struct GradientRange {
  double gradient = 0;
  double hessian = 0;

  void Merge(const GradientRange& other) {
    // Not std::max, which would lose a NaN.
    gradient = std::isnan(gradient) || other.gradient <= gradient ? gradient : other.gradient;
    hessian = std::isnan(hessian) || other.hessian <= hessian ? hessian : other.hessian;
  }
  bool finite() const { return std::isfinite(gradient) && std::isfinite(hessian); }
};

// Whole numbers of at most kBits bits and a sign; how much one is worth.
class GradientScale {
 public:
  static constexpr int kBits = 30;

  GradientScale() = default;
  explicit GradientScale(const GradientRange& range)
      : gradient_unit_(UnitOf(range.gradient)),
        hessian_unit_(UnitOf(range.hessian)),
        per_gradient_(1 / gradient_unit_),
        per_hessian_(1 / hessian_unit_) {}

  double gradient(int64_t sum) const { return static_cast<double>(sum) * gradient_unit_; }
  double hessian(int64_t sum) const { return static_cast<double>(sum) * hessian_unit_; }

  // A row's two numbers in a word. A hessian above 0 stays so. Precondition: within the range.
  uint64_t Pack(double gradient, double hessian) const {
    const int64_t whole_gradient = Whole(gradient * per_gradient_);
    int64_t whole_hessian = Whole(hessian * per_hessian_);
    whole_hessian = whole_hessian == 0 && hessian > 0 ? 1 : whole_hessian;
    return (static_cast<uint64_t>(whole_gradient) << 32U) + static_cast<uint64_t>(whole_hessian);
  }
  static GradientSum Unpack(uint64_t word) {
    return {static_cast<int64_t>(word) >> 32, static_cast<int64_t>(word & 0xffffffffU)};
  }

 private:
  // The smallest power of two in which `largest` has kBits bits.
  static double UnitOf(double largest) {
    int exponent = 0;
    if (largest > 0) {
      exponent = std::ilogb(largest);
      exponent += std::ldexp(1.0, exponent) < largest ? 1 : 0;
    }
    return std::ldexp(1.0, std::max(exponent - kBits, -1000));
  }
  // To the nearest, ties to even; |x| <= 2^30.
  static int64_t Whole(double x) {
    constexpr double kShift = 0x1.8p52;
    return std::bit_cast<int64_t>(x + kShift) - std::bit_cast<int64_t>(kShift);
  }

  double gradient_unit_ = 1, hessian_unit_ = 1;
  double per_gradient_ = 1, per_hessian_ = 1;  // the inverses, exact
};

}  // namespace sluice::models::histogram
