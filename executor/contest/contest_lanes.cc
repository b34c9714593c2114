#include "executor/contest/contest_lanes.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <thread>

namespace sluice::executor {
namespace {

class Lanes {
 public:
  Lanes(const std::vector<size_t>& parallel, const std::vector<size_t>& single)
      : parallel_(parallel), single_(single) {}

  std::optional<LaneTurn> Next(bool takes_parallel) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (takes_parallel && parallel_at_ < parallel_.size()) {
      const auto left = static_cast<double>(parallel_.size() - parallel_at_);
      const bool first = parallel_at_ == 0;
      return LaneTurn{parallel_[parallel_at_++], 1 / left, first};
    }
    if (single_at_ == single_.size()) {
      return std::nullopt;
    }
    const bool helped = parallel_at_ == parallel_.size() && has_two();
    const auto left = static_cast<double>(single_.size() - single_at_);
    const bool first = single_at_ == 0 && parallel_.empty();
    return LaneTurn{single_[single_at_++], std::min((helped ? 2 : 1) / left, 1.0), first};
  }
  static bool has_two() { return std::thread::hardware_concurrency() > 1; }

 private:
  std::mutex mutex_;
  const std::vector<size_t>& parallel_;
  const std::vector<size_t>& single_;
  size_t parallel_at_ = 0;
  size_t single_at_ = 0;
};

}  // namespace

void RunLanes(const std::vector<size_t>& parallel, const std::vector<size_t>& single,
              const std::function<void(const LaneTurn&)>& work) {
  Lanes lanes(parallel, single);
  const auto run = [&](bool takes_parallel) {
    while (const std::optional<LaneTurn> turn = lanes.Next(takes_parallel)) {
      work(*turn);
    }
  };
  std::jthread beside;
  if (Lanes::has_two() && !single.empty() && parallel.size() + single.size() > 1) {
    beside = std::jthread([&] { run(false); });
  }
  run(true);
}

}  // namespace sluice::executor
