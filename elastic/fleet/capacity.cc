#include "elastic/fleet/capacity.h"

namespace sluice::elastic {
namespace {

constexpr double kRounding = 1e-9;

}  // namespace

bool Capacity::Fits(const Capacity& request) const {
  // Processors first: they are short most often.
  if (request.cpu > cpu + kRounding || request.memory_bytes > memory_bytes ||
      request.gpu > gpu + kRounding || request.processes > processes + kRounding) {
    return false;
  }
  for (size_t i = 0; i < further.size(); ++i) {
    if (request.further[i] > further[i] + kRounding) {
      return false;
    }
  }
  return true;
}

Capacity& Capacity::operator+=(const Capacity& other) {
  cpu += other.cpu;
  memory_bytes += other.memory_bytes;
  gpu += other.gpu;
  processes += other.processes;
  for (size_t i = 0; i < further.size(); ++i) {
    further[i] += other.further[i];
  }
  return *this;
}

Capacity& Capacity::operator-=(const Capacity& other) {
  cpu -= other.cpu;
  memory_bytes -= other.memory_bytes;
  gpu -= other.gpu;
  processes -= other.processes;
  for (size_t i = 0; i < further.size(); ++i) {
    further[i] -= other.further[i];
  }
  return *this;
}

Capacity operator*(const Capacity& one, double times) {
  Capacity product = {one.cpu * times,
                      static_cast<int64_t>(static_cast<double>(one.memory_bytes) * times),
                      one.gpu * times, one.processes * times};
  for (size_t i = 0; i < product.further.size(); ++i) {
    product.further[i] = one.further[i] * times;
  }
  return product;
}

}  // namespace sluice::elastic
