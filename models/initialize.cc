#include "models/initialize.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/kernels.h"
#include "models/kernels_random_internal.h"

namespace sluice::models {
namespace {

uint64_t KeyOf(uint64_t seed, std::string_view name) {
  uint64_t key = MixBits(seed + kCounterStep);
  for (const char c : name) {
    key = MixBits(key ^ static_cast<unsigned char>(c));
  }
  return key;
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
  const Kernels& kernels = ActiveKernels();
  const auto make = kind_ == Kind::kUniform ? kernels.uniforms : kernels.normals;
  size_t i = 0;
  for (; i + kInitialValues <= values.size(); i += kInitialValues) {
    make(key_, first_pair + i / 2, value_, values.data() + i);
  }
  if (i < values.size()) {
    float block[kInitialValues];
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
