#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <numbers>

#include "models/model.h"

namespace sluice::models {
namespace {

// SplitMix64's finaliser (Steele, Lea, Flood 2014): every bit of the input moves every bit of the
// output, so that counters can be its input.
uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

// A random sequence that is addressed, not walked: At(i) depends on (seed, name, i) alone.
class Stream {
 public:
  Stream(uint64_t seed, std::string_view name) : key_(Mix(seed + 0x9e3779b97f4a7c15u)) {
    for (const char c : name) {
      key_ = Mix(key_ ^ static_cast<unsigned char>(c));
    }
  }
  uint64_t At(uint64_t index) const { return Mix(key_ + (index + 1) * 0x9e3779b97f4a7c15u); }

  // [0, 1) with 53 bits.
  double Uniform(uint64_t index) const { return static_cast<double>(At(index) >> 11) * 0x1.0p-53; }
  // Box and Muller 1958: the values 2i and 2i + 1 are the two of one pair.
  double Normal(uint64_t index) const {
    const uint64_t pair = index & ~uint64_t{1};
    const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform(pair)));
    const double angle = 2.0 * std::numbers::pi * Uniform(pair + 1);
    return radius * ((index & 1) == 0 ? std::cos(angle) : std::sin(angle));
  }

 private:
  uint64_t key_;
};

// What an initialiser's name comes down to.
struct Distribution {
  enum class Kind { kConstant, kUniform, kNormal };
  Kind kind = Kind::kConstant;
  double value = 0;  // the constant, the limit, the standard deviation
};

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

Distribution Named(std::string_view name, double fan_in, double fan_out, double default_stddev) {
  using Kind = Distribution::Kind;
  constexpr double kKerasLimit = 0.05;  // RandomUniform's default
  const std::string_view base = name.substr(0, name.find(':'));
  if (base == "zeros") {
    return {Kind::kConstant, 0};
  }
  if (base == "ones") {
    return {Kind::kConstant, 1};
  }
  if (base == "uniform") {
    return {Kind::kUniform, ParameterOr(name, kKerasLimit)};
  }
  if (base == "glorot_uniform") {
    return {Kind::kUniform, std::sqrt(6.0 / (fan_in + fan_out))};
  }
  if (base == "glorot_normal") {
    return {Kind::kNormal, std::sqrt(2.0 / (fan_in + fan_out))};
  }
  if (base == "he_uniform") {
    return {Kind::kUniform, std::sqrt(6.0 / fan_in)};
  }
  if (base == "he_normal") {
    return {Kind::kNormal, std::sqrt(2.0 / fan_in)};
  }
  SLUICE_CHECK(base.empty() || base == "normal", fmt::format("no initialiser '{}'", name));
  return {Kind::kNormal, ParameterOr(name, default_stddev)};
}

void Fill(const Stream& stream, const Distribution& distribution, uint64_t first,
          std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    double value = distribution.value;
    if (distribution.kind == Distribution::Kind::kUniform) {
      value *= 2.0 * stream.Uniform(first + i) - 1.0;
    } else if (distribution.kind == Distribution::Kind::kNormal) {
      value *= stream.Normal(first + i);
    }
    values[i] = static_cast<float>(value);
  }
}

}  // namespace

size_t DenseTensor::size() const {
  size_t size = 1;
  for (const int64_t extent : shape) {
    size *= static_cast<size_t>(extent);
  }
  return size;
}

void InitializeDense(const DenseTensor& tensor, uint64_t seed, std::span<float> values) {
  SLUICE_CHECK(values.size() == tensor.size(), "a tensor is initialised as a whole");
  const double fan_in = tensor.shape.empty() ? 1 : static_cast<double>(tensor.shape.front());
  const double fan_out = tensor.shape.empty() ? 1 : static_cast<double>(tensor.shape.back());
  constexpr double kKerasStddev = 0.05;  // RandomNormal's default
  Fill(Stream(seed, tensor.name), Named(tensor.initializer, fan_in, fan_out, kKerasStddev), 0,
       values);
}

void InitializeRow(const EmbeddingTable& table, uint64_t seed, int64_t id,
                   std::span<float> values) {
  SLUICE_CHECK(values.size() == table.dimension, "a row is initialised as a whole");
  const double width = table.dimension;
  const Distribution distribution =
      Named(table.initializer, static_cast<double>(table.rows), width, 1.0 / std::sqrt(width));
  if (distribution.kind == Distribution::Kind::kConstant) {
    Fill(Stream(0, {}), distribution, 0, values);  // wide tables: no hash of the name per row
    return;
  }
  // Rows start at even places, so that no Box-Muller pair belongs to two rows.
  const uint64_t stride = (uint64_t{table.dimension} + 1) & ~uint64_t{1};
  Fill(Stream(seed, table.name), distribution, static_cast<uint64_t>(id) * stride, values);
}

}  // namespace sluice::models
