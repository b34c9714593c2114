#include "elastic/worker/pass_sums.h"

#include <algorithm>
#include <cstring>
#include <functional>

namespace sluice::elastic {

void AddUp(const std::vector<double>& own, std::vector<double>* all) {
  all->resize(own.size());
  std::transform(own.begin(), own.end(), all->begin(), all->begin(), std::plus<>());
}

std::string SumsToBytes(const std::vector<double>& sums) {
  std::string bytes(sums.size() * sizeof(double), '\0');
  if (!sums.empty()) {
    std::memcpy(bytes.data(), sums.data(), bytes.size());
  }
  return bytes;
}

Result<std::vector<double>> SumsFromBytes(const std::string& bytes) {
  if (bytes.size() % sizeof(double) != 0) {
    return InvalidArgument("the sums of a shard are damaged");
  }
  std::vector<double> sums(bytes.size() / sizeof(double));
  if (!sums.empty()) {
    std::memcpy(sums.data(), bytes.data(), bytes.size());
  }
  return sums;
}

}  // namespace sluice::elastic
