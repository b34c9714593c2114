#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace sluice {

// How many values lie at or below each of a few bounds, their number and their sum. Not
// thread-safe.
class Histogram {
 public:
  // Ascending.
  explicit Histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), counts_(bounds_.size(), 0) {}

  void Add(double value) {
    for (size_t i = 0; i < bounds_.size(); ++i) {
      counts_[i] += value <= bounds_[i] ? 1 : 0;
    }
    ++count_;
    sum_ += value;
  }

  const std::vector<double>& bounds() const { return bounds_; }
  const std::vector<uint64_t>& counts() const { return counts_; }  // by bound
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace sluice
