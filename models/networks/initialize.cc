#include "models/networks/initialize.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/kernels.h"
#include "models/kernels/kernels_random_internal.h"

namespace sluice::models {
namespace {

uint64_t KeyOf(uint64_t seed, std::string_view name) {
  uint64_t key = MixBits(seed + kCounterStep);
  for (const char c : name) {
    key = MixBits(key ^ static_cast<unsigned char>(c));
  }
  return key;
}

// The parameter in "uniform:0.25" or "normal:0.1", else `otherwise`.
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

Status CheckInitializer(std::string_view name, std::string_view of) {
  static const std::vector<std::string> kNames = {"normal",     "uniform",        "zeros",
                                                  "ones",       "glorot_uniform", "glorot_normal",
                                                  "he_uniform", "he_normal"};
  name = name.substr(0, name.find(':'));
  if (name.empty() || std::find(kNames.begin(), kNames.end(), name) != kNames.end()) {
    return OkStatus();
  }
  Status status = NotFound(fmt::format("no initializer '{}' for {}", name, of));
  if (const auto near = NearestName(name, kNames)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return std::move(status).Hint("normal, uniform, zeros, ones, glorot_uniform, he_normal");
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
  float* const row = values.data();
  Fill(std::span(&first_pair, 1), values.size(), &row);
}

void Initializer::Fill(std::span<const uint64_t> firsts, size_t size, float* const* rows) const {
  if (kind_ == Kind::kConstant) {
    for (size_t row = 0; row < firsts.size(); ++row) {
      std::fill_n(rows[row], size, value_);
    }
    return;
  }
  const Kernels& kernels = ActiveKernels();
  const auto make = kind_ == Kind::kUniform ? kernels.uniforms : kernels.normals;
  uint64_t pairs[kInitialBlocks] = {};
  std::span<float> targets[kInitialBlocks];
  size_t blocks = 0;
  const auto flush = [&] {
    float made[kInitialBlocks * kInitialValues];
    make(key_, pairs, value_, made);
    for (size_t block = 0; block < blocks; ++block) {
      std::copy_n(made + block * kInitialValues, targets[block].size(), targets[block].data());
    }
    blocks = 0;
  };
  for (size_t row = 0; row < firsts.size(); ++row) {
    for (size_t i = 0; i < size; i += kInitialValues) {
      pairs[blocks] = firsts[row] + i / 2;
      targets[blocks] = std::span(rows[row] + i, std::min(kInitialValues, size - i));
      if (++blocks == kInitialBlocks) {
        flush();
      }
    }
  }
  if (blocks > 0) {
    flush();
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
      dimension_(table.dimension),
      pairs_((uint64_t{table.dimension} + 1) / 2) {}

void RowInitializer::Fill(std::span<const int64_t> ids, float* const* rows) const {
  constexpr size_t kTogether = 64;
  uint64_t firsts[kTogether];
  for (size_t begin = 0; begin < ids.size(); begin += kTogether) {
    const size_t count = std::min(kTogether, ids.size() - begin);
    for (size_t i = 0; i < count; ++i) {
      firsts[i] = static_cast<uint64_t>(ids[begin + i]) * pairs_;
    }
    values_.Fill(std::span(firsts, count), dimension_, rows + begin);
  }
}

}  // namespace sluice::models
