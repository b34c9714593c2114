#include "tests/chaos/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>

namespace sluice::chaos {
namespace {

constexpr uint32_t kFewestFaults = 2, kMostFaults = 8;
// The last faults come when a job that was not held up would be over: most are held up.
constexpr double kLastFault = 1.1;
// Of a hundred.
constexpr uint32_t kKills = 65, kAtWorkers = 55, kAtServers = 30;
constexpr uint32_t kLongPauses = 25;
// A short pause is shorter than the silence after which the master gives a process up (a worker
// after three seconds, a server after five), a long one may be longer.
constexpr double kShortestPause = 0.05, kShortPause = 1.2, kLongPause = 3, kLongestPause = 7;

// Distributions of the standard library differ from one to the next; these do not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11U) * 0x1p-53;
  }

 private:
  std::mt19937_64 engine_;
};

Target DrawTarget(Mode mode, Dice& dice) {
  const uint32_t roll = dice.Below(100);
  if (roll < kAtWorkers) {
    return Target::kWorker;
  }
  if (roll < kAtWorkers + kAtServers) {
    return mode == Mode::kAllReduce ? Target::kWorker : Target::kServer;
  }
  return Target::kMaster;
}

}  // namespace

std::string_view NameOf(Mode mode) {
  switch (mode) {
    case Mode::kAsynchronous:
      return "asynchronous";
    case Mode::kBoundedStaleness:
      return "bounded staleness";
    case Mode::kSynchronous:
      return "synchronous";
    case Mode::kAllReduce:
      return "all-reduce";
  }
  return "";
}

std::string_view NameOf(Table table) {
  return table == Table::kCensus ? "census" : "clicks";
}
std::string_view NameOf(Blow blow) {
  return blow == Blow::kKill ? "kill" : "pause";
}
std::string_view NameOf(Target target) {
  return target == Target::kWorker ? "worker" : target == Target::kServer ? "server" : "master";
}

Schedule DrawSchedule(uint64_t seed, bool kill_masters) {
  Dice dice(seed);
  Schedule schedule;
  schedule.seed = seed;
  schedule.mode = kModes[seed % kModes.size()];
  schedule.table = seed / kModes.size() % 2 == 0 ? Table::kCensus : Table::kClicks;
  schedule.faults.resize(kFewestFaults + dice.Below(kMostFaults - kFewestFaults + 1));
  for (Fault& fault : schedule.faults) {
    fault.at = dice.Between(0, kLastFault);
    fault.target = DrawTarget(schedule.mode, dice);
    fault.pick = dice.Below(1U << 16U);
    fault.blow = dice.Percent(kKills) ? Blow::kKill : Blow::kPause;
    fault.pause_seconds = dice.Percent(kLongPauses) ? dice.Between(kLongPause, kLongestPause)
                                                    : dice.Between(kShortestPause, kShortPause);
    if (fault.target == Target::kMaster && !kill_masters) {
      fault.blow = Blow::kPause;
    }
  }
  std::sort(schedule.faults.begin(), schedule.faults.end(),
            [](const Fault& left, const Fault& right) { return left.at < right.at; });
  return schedule;
}

std::string Describe(const Fault& fault) {
  const std::string blow =
      fault.blow == Blow::kKill ? "kill" : fmt::format("pause {:.2f} s", fault.pause_seconds);
  return fmt::format("{:.2f} {} {}", fault.at, blow, NameOf(fault.target));
}

std::string Describe(const Schedule& schedule) {
  std::string text =
      fmt::format("seed {}: {}, {}:", schedule.seed, NameOf(schedule.table), NameOf(schedule.mode));
  for (const Fault& fault : schedule.faults) {
    text += fmt::format(" [{}]", Describe(fault));
  }
  return text;
}

}  // namespace sluice::chaos
