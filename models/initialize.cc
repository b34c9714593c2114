#include "models/initialize.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numbers>

namespace sluice::models {
namespace {

// Values are made so many pairs at a time: enough for any register, and a row of 16 in one go.
constexpr size_t kPairs = 8;
constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;

// SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit of the input moves every bit of the
// output, so that counters can be its input.
inline uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

uint64_t KeyOf(uint64_t seed, std::string_view name) {
  uint64_t key = Mix(seed + kGolden);
  for (const char c : name) {
    key = Mix(key ^ static_cast<unsigned char>(c));
  }
  return key;
}

// 64 random bits for each pair, 32 for each of its values.
inline void RandomBits(uint64_t key, uint64_t first_pair, int32_t* left, int32_t* right) {
  for (size_t i = 0; i < kPairs; ++i) {
    const uint64_t bits = Mix(key + (first_pair + i + 1) * kGolden);
    left[i] = static_cast<int32_t>(bits >> 32);
    right[i] = static_cast<int32_t>(bits);
  }
}

// What follows has no branch, no call and no fused operation, so that the compiler makes vectors of
// it and their width changes nothing.

// [-1, 1].
inline float Signed(int32_t bits) {
  return static_cast<float>(bits) * 0x1p-31F;
}

// ln x for normal x: x = 2^e m with m about 1, and ln m = 2 atanh((m - 1) / (m + 1)), whose series
// is within a float's precision after the fifth term.
inline float Log(float x) {
  constexpr int32_t kRootHalf = 0x3f3504f3;  // the bits of sqrt(1/2), the smallest m
  constexpr int32_t kMantissa = 0x007fffff;
  const int32_t bits = std::bit_cast<int32_t>(x) + (0x3f800000 - kRootHalf);
  const float exponent = static_cast<float>((bits >> 23) - 127);
  const float m = std::bit_cast<float>((bits & kMantissa) + kRootHalf);
  const float s = (m - 1.0F) / (m + 1.0F);
  const float z = s * s;
  const float series = 1.0F + z * (1.0F / 3 + z * (1.0F / 5 + z * (1.0F / 7 + z * (1.0F / 9))));
  return exponent * std::numbers::ln2_v<float> + 2.0F * s * series;
}

// The Taylor series for |x| <= pi / 2, to a float's precision.
inline float Sine(float x) {
  const float z = x * x;
  return x * (1.0F + z * (-1.0F / 6 +
                          z * (1.0F / 120 +
                               z * (-1.0F / 5040 + z * (1.0F / 362880 + z * (-1.0F / 39916800))))));
}
inline float Cosine(float x) {
  const float z = x * x;
  return 1.0F + z * (-1.0F / 2 +
                     z * (1.0F / 24 +
                          z * (-1.0F / 720 + z * (1.0F / 40320 + z * (-1.0F / 3628800 +
                                                                      z * (1.0F / 479001600))))));
}

void Uniform(uint64_t key, uint64_t first_pair, float limit, float* values) {
  int32_t left[kPairs], right[kPairs];
  RandomBits(key, first_pair, left, right);
  for (size_t i = 0; i < kPairs; ++i) {
    values[2 * i] = limit * Signed(left[i]);
    values[2 * i + 1] = limit * Signed(right[i]);
  }
}

// Box and Muller 1958.
void Normal(uint64_t key, uint64_t first_pair, float stddev, float* values) {
  int32_t left[kPairs], right[kPairs];
  RandomBits(key, first_pair, left, right);
  for (size_t i = 0; i < kPairs; ++i) {
    // (0, 1]: never less than 2^-32, so that the radius is at most 6.7.
    const float uniform = (static_cast<float>(left[i] & 0x7fffffff) + 0.5F) * 0x1p-31F;
    const float radius = stddev * std::sqrt(-2.0F * Log(uniform));
    // The whole turn by its half, where the series are good.
    const float half = Signed(right[i]) * (std::numbers::pi_v<float> / 2);
    const float sine = Sine(half);
    values[2 * i] = radius * (1.0F - 2.0F * sine * sine);
    values[2 * i + 1] = radius * (2.0F * sine * Cosine(half));
  }
}

// "uniform:0.25" and "normal:0.1" carry their own parameter.
double ParameterOr(std::string_view text, double otherwise) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    return otherwise;
  }
  double value = otherwise;
  std::from_chars(text.data() + colon + 1, text.data() + text.size(), value);
  return value;
}

}  // namespace

size_t DenseTensor::size() const {
  size_t size = 1;
  for (const int64_t extent : shape) {
    size *= static_cast<size_t>(extent);
  }
  return size;
}

Initializer::Initializer(std::string_view name, uint64_t seed, std::string_view initializer,
                         const Shape& shape)
    : key_(KeyOf(seed, name)) {
  constexpr double kKerasLimit = 0.05;  // RandomUniform's default
  const std::string_view base = initializer.substr(0, initializer.find(':'));
  double value = 0;
  if (base == "zeros" || base == "ones") {
    kind_ = Kind::kConstant;
    value = base == "ones" ? 1 : 0;
  } else if (base == "uniform") {
    kind_ = Kind::kUniform;
    value = ParameterOr(initializer, kKerasLimit);
  } else if (base == "glorot_uniform") {
    kind_ = Kind::kUniform;
    value = std::sqrt(6.0 / (shape.fan_in + shape.fan_out));
  } else if (base == "he_uniform") {
    kind_ = Kind::kUniform;
    value = std::sqrt(6.0 / shape.fan_in);
  } else if (base == "glorot_normal") {
    value = std::sqrt(2.0 / (shape.fan_in + shape.fan_out));
  } else if (base == "he_normal") {
    value = std::sqrt(2.0 / shape.fan_in);
  } else {
    SLUICE_CHECK(base.empty() || base == "normal", fmt::format("no initialiser '{}'", initializer));
    value = ParameterOr(initializer, shape.stddev);
  }
  value_ = static_cast<float>(value);
}

void Initializer::Fill(uint64_t first_pair, std::span<float> values) const {
  if (kind_ == Kind::kConstant) {
    std::fill(values.begin(), values.end(), value_);
    return;
  }
  const auto make = kind_ == Kind::kUniform ? Uniform : Normal;
  size_t i = 0;
  for (; i + 2 * kPairs <= values.size(); i += 2 * kPairs) {
    make(key_, first_pair + i / 2, value_, values.data() + i);
  }
  if (i < values.size()) {
    float block[2 * kPairs];
    make(key_, first_pair + i / 2, value_, block);
    std::copy_n(block, values.size() - i, values.data() + i);
  }
}

void InitializeDense(const DenseTensor& tensor, uint64_t seed, std::span<float> values) {
  SLUICE_CHECK(values.size() == tensor.size(), "a tensor is initialised as a whole");
  constexpr double kKerasStddev = 0.05;  // RandomNormal's default
  Initializer::Shape shape{.stddev = kKerasStddev};
  if (!tensor.shape.empty()) {
    shape.fan_in = static_cast<double>(tensor.shape.front());
    shape.fan_out = static_cast<double>(tensor.shape.back());
  }
  Initializer(tensor.name, seed, tensor.initializer, shape).Fill(0, values);
}

RowInitializer::RowInitializer(const EmbeddingTable& table, uint64_t seed)
    : values_(table.name, seed, table.initializer,
              {.fan_in = static_cast<double>(table.rows),
               .fan_out = static_cast<double>(table.dimension),
               .stddev = 1.0 / std::sqrt(static_cast<double>(table.dimension))}),
      pairs_((uint64_t{table.dimension} + 1) / 2) {}

}  // namespace sluice::models
