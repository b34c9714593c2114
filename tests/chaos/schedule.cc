#include "tests/chaos/schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <tuple>

namespace sluice::chaos {
namespace {

constexpr uint32_t kMinFaults = 2, kMaxFaults = 8;
constexpr uint32_t kMaxExtraFaults = 3;  // in addition to the schedule's typical faults
// The last faults come when an undisturbed job would be over: most jobs are delayed.
constexpr double kLastFault = 1.1;
// Percentages.
constexpr uint32_t kKills = 65, kAtWorkers = 55, kAtServers = 30;
constexpr uint32_t kLongPauses = 25;
constexpr uint32_t kWithCheckpoints = 30, kOnPostgres = 20, kWithPatience = 35;
// A short pause is shorter than the silence after which the master gives a process up (a worker
// after three seconds, a server after five); a long one may be longer.
constexpr double kShortestPause = 0.05, kShortPause = 1.2, kLongPause = 3, kLongestPause = 8;
// In a storm.
constexpr double kShortestGap = 0.25, kLongestGap = 0.9;
// If a job has fewer epochs, some faults do not happen.
constexpr uint32_t kUsualEnds = 3, kEndsWithPatience = 5;
// In a burst.
constexpr double kWithin = 0.008;
// A job may lose this many masters in a row without training in between; do not demand more.
constexpr int kMaxMasters = 5;

// The standard library's distributions differ between implementations; these do not.
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(engine_() % end); }
  uint32_t From(uint32_t first, uint32_t last) { return first + Below(last - first + 1); }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  double Between(double low, double high) {
    return low + (high - low) * static_cast<double>(engine_() >> 11U) * 0x1p-53;
  }

 private:
  std::mt19937_64 engine_;
};

struct Weighted {
  Style style;
  uint32_t percent;
};
constexpr std::array kStyles = {
    Weighted{Style::kStorm, 25},      Weighted{Style::kBurst, 25},
    Weighted{Style::kScattered, 14},  Weighted{Style::kEpochEnds, 9},
    Weighted{Style::kDrafts, 6},      Weighted{Style::kCommit, 6},
    Weighted{Style::kConnections, 6}, Weighted{Style::kFiles, 4},
    Weighted{Style::kLostCopies, 5},  // the rest
};

Style DrawStyle(Dice& dice) {
  uint32_t roll = dice.Below(100);
  for (const Weighted& each : kStyles) {
    if (roll < each.percent) {
      return each.style;
    }
    roll -= each.percent;
  }
  return kStyles.back().style;
}

Job DrawJob(uint64_t seed, Style style, Dice& dice) {
  Job job;
  job.mode = kModes[seed % kModes.size()];
  job.table = kTables[seed / kModes.size() % kTables.size()];
  job.checkpoints =
      dice.Percent(kWithCheckpoints) || style == Style::kDrafts || style == Style::kFiles;
  job.postgres = dice.Percent(kOnPostgres) || style == Style::kConnections;
  const int patience = static_cast<int>(dice.From(1, 2));
  const bool stops = dice.Percent(style == Style::kEpochEnds ? 80 : kWithPatience);
  // With ids nothing is learnt that would make one epoch better than another.
  job.patience = stops && job.table != Table::kIds ? patience : 0;
  job.one_epoch = job.table == Table::kIds && !SameBits(job.mode) && style != Style::kEpochEnds;
  return job;
}

// Draws the faults of one schedule.
class Author {
 public:
  Author(const Job& job, Style style, Dice* dice, std::vector<Fault>* faults)
      : mode_(job.mode), stops_(job.patience > 0), style_(style), dice_(*dice), faults_(*faults) {}

  void Write() {
    switch (style_) {
      case Style::kScattered:
        return Scatter(kMinFaults, kMaxFaults);
      case Style::kStorm:
        Storm();
        break;
      case Style::kBurst:
        Bursts();
        break;
      case Style::kEpochEnds:
        EpochEnds();
        break;
      case Style::kDrafts:
        Drafts();
        break;
      case Style::kCommit:
        Commit();
        break;
      case Style::kConnections:
        Disconnect();
        break;
      case Style::kLostCopies:
        LoseCopies();
        break;
      case Style::kFiles:
        Files();
        break;
    }
    Scatter(0, kMaxExtraFaults);
  }

 private:
  void Scatter(uint32_t fewest, uint32_t most) {
    for (uint32_t left = dice_.From(fewest, most); left > 0; --left) {
      Fault fault = Draw(DrawTarget());
      fault.at = dice_.Between(0, kLastFault);
      faults_.push_back(fault);
    }
  }

  void Storm() {
    const double at = dice_.Between(0.05, 0.8);
    double after = 0;
    for (uint32_t left = dice_.From(3, kMaxMasters); left > 0; --left) {
      Fault fault = Draw(Target::kMaster);
      fault.kind = FaultKind::kKill;
      fault.at = at;
      fault.after = after;
      faults_.push_back(fault);
      after += dice_.Between(kShortestGap, kLongestGap);
    }
  }

  void Bursts() {
    for (uint32_t left = dice_.From(1, 3); left > 0; --left) {
      const double at = dice_.Between(0.05, 1);
      if (dice_.Percent(35)) {
        faults_.push_back(AtOnce(Target::kWorker, at));
        if (dice_.Percent(40)) {
          faults_.push_back(Within(Target::kMaster, at));
        }
        continue;
      }
      bool server = false;  // one server at most: more is kLostCopies
      for (uint32_t more = dice_.From(2, 5); more > 0; --more) {
        Target target = DrawTarget();
        target = target == Target::kServer && server ? Target::kWorker : target;
        server = server || target == Target::kServer;
        faults_.push_back(Within(target, at));
      }
    }
  }

  // After every possible epoch, since any may be the best.
  void EpochEnds() {
    const uint32_t last = stops_ ? kEndsWithPatience : kUsualEnds;
    for (uint32_t epoch = 1; epoch <= last; ++epoch) {
      if (dice_.Percent(65)) {
        faults_.push_back(At(Moment::kEvaluation, epoch, 0.15));
      }
    }
  }
  void Drafts() {
    for (uint32_t left = dice_.From(2, 4); left > 0; --left) {
      faults_.push_back(At(Moment::kDraft, dice_.From(1, 5), 0.02));
    }
  }
  void Commit() {
    for (uint32_t left = dice_.From(1, 3); left > 0; --left) {
      faults_.push_back(At(Moment::kCommit, 1, dice_.Percent(60) ? 0.04 : 0.3));
    }
  }

  void Disconnect() {
    for (uint32_t left = dice_.From(2, 6); left > 0; --left) {
      Fault fault = Draw(dice_.Percent(50) ? Target::kMaster : Target::kWorker);
      fault.kind = FaultKind::kDisconnect;
      fault.at = dice_.Between(0, 1);
      fault.all = fault.target == Target::kWorker && dice_.Percent(25);
      faults_.push_back(fault);
    }
  }

  void LoseCopies() {
    const double at = dice_.Between(0.35, 0.9);  // there is something to lose
    if (dice_.Percent(60) || mode_ == Mode::kAllReduce) {
      faults_.push_back(AtOnce(Holders(), at));
    } else {
      faults_.push_back(Within(Target::kServer, at));
      faults_.push_back(Within(Target::kServer, at));
    }
    if (dice_.Percent(25)) {
      faults_.push_back(AtOnce(Target::kMaster, at));
      faults_.push_back(AtOnce(Target::kWorker, at));
    }
  }

  // Changed files are noticed only when the parameters are lost.
  void Files() {
    Fault files = Draw(Target::kCheckpoint);
    files.moment = Moment::kCheckpoint;
    files.nth = dice_.From(2, 3);
    files.kind = dice_.Percent(60) ? FaultKind::kExchange : FaultKind::kDamage;
    faults_.push_back(files);
    Fault loss = AtOnce(Holders(), 0);
    loss.moment = files.moment;
    loss.nth = files.nth;
    faults_.push_back(loss);
  }

  // Processes that hold parameters.
  Target Holders() const { return mode_ == Mode::kAllReduce ? Target::kWorker : Target::kServer; }
  Target DrawTarget() {
    const uint32_t roll = dice_.Below(100);
    return roll < kAtWorkers                ? Target::kWorker
           : roll < kAtWorkers + kAtServers ? Holders()
                                            : Target::kMaster;
  }
  Fault Draw(Target target) {
    Fault fault;
    fault.target = target;
    fault.pick = dice_.Below(1U << 16U);
    fault.kind = dice_.Percent(kKills) ? FaultKind::kKill : FaultKind::kPause;
    fault.pause_seconds = dice_.Percent(kLongPauses) ? dice_.Between(kLongPause, kLongestPause)
                                                     : dice_.Between(kShortestPause, kShortPause);
    return fault;
  }
  // One fault of a burst.
  Fault Within(Target target, double at) {
    Fault fault = Draw(target);
    fault.at = at;
    fault.after = dice_.Between(0, kWithin);
    fault.kind = dice_.Percent(90) ? FaultKind::kKill : FaultKind::kPause;
    fault.regardless = style_ == Style::kLostCopies;
    return fault;
  }
  Fault AtOnce(Target target, double at) {
    Fault fault = Within(target, at);
    fault.kind = FaultKind::kKill;
    fault.all = true;
    fault.regardless = true;
    return fault;
  }
  Fault At(Moment moment, uint32_t nth, double within) {
    const uint32_t roll = dice_.Below(100);
    Fault fault = Draw(roll < 50 ? Target::kMaster : roll < 80 ? Holders() : Target::kWorker);
    fault.moment = moment;
    fault.nth = nth;
    fault.after = dice_.Between(0, within);
    fault.kind = dice_.Percent(85) ? FaultKind::kKill : FaultKind::kPause;
    return fault;
  }

  const Mode mode_;
  const bool stops_;
  const Style style_;
  Dice& dice_;
  std::vector<Fault>& faults_;
};

void SpareMasters(int killed_at_most, std::vector<Fault>* faults) {
  for (Fault& fault : *faults) {
    if (fault.target == Target::kMaster && fault.kind == FaultKind::kKill &&
        killed_at_most-- <= 0) {
      fault.kind = FaultKind::kPause;
    }
  }
}

std::string When(const Fault& fault) {
  const auto after = [&](std::string_view moment) {
    return fmt::format("{:.3f} s after {}", fault.after, moment);
  };
  switch (fault.moment) {
    case Moment::kTime:
      return fault.after > 0 ? fmt::format("{:.2f}+{:.3f} s", fault.at, fault.after)
                             : fmt::format("{:.2f}", fault.at);
    case Moment::kEvaluation:
      return after(fmt::format("evaluation {}", fault.nth));
    case Moment::kDraft:
      return after(fmt::format("draft {}", fault.nth));
    case Moment::kCheckpoint:
      return after(fmt::format("checkpoint {}", fault.nth));
    case Moment::kCommit:
      return after("the last evaluation");
  }
  return "";
}

}  // namespace

bool SameBits(Mode mode) {
  return mode == Mode::kSynchronous || mode == Mode::kAllReduce;
}

bool IsStorm(Style style) {
  return style == Style::kStorm || style == Style::kBurst;
}

std::string_view NameOf(Mode mode) {
  static constexpr std::array<std::string_view, 4> kNames = {"asynchronous", "bounded staleness",
                                                             "synchronous", "all-reduce"};
  return kNames[static_cast<size_t>(mode)];
}
std::string_view NameOf(Table table) {
  static constexpr std::array<std::string_view, 3> kNames = {"census", "clicks", "ids"};
  return kNames[static_cast<size_t>(table)];
}
std::string_view NameOf(FaultKind kind) {
  static constexpr std::array<std::string_view, 5> kNames = {"kill", "pause", "disconnect",
                                                             "exchange", "damage"};
  return kNames[static_cast<size_t>(kind)];
}
std::string_view NameOf(Target target) {
  static constexpr std::array<std::string_view, 4> kNames = {"worker", "server", "master",
                                                             "checkpoint"};
  return kNames[static_cast<size_t>(target)];
}
std::string_view NameOf(Style style) {
  static constexpr std::array<std::string_view, 9> kNames = {"scattered",   "storm",       "burst",
                                                             "epoch ends",  "drafts",      "commit",
                                                             "connections", "lost copies", "files"};
  return kNames[static_cast<size_t>(style)];
}

Schedule DrawSchedule(uint64_t seed, bool kill_masters) {
  Dice dice(seed);
  Schedule schedule;
  schedule.seed = seed;
  schedule.style = DrawStyle(dice);
  schedule.job = DrawJob(seed, schedule.style, dice);
  Author(schedule.job, schedule.style, &dice, &schedule.faults).Write();
  SpareMasters(kill_masters ? kMaxMasters : 0, &schedule.faults);
  std::stable_sort(schedule.faults.begin(), schedule.faults.end(),
                   [](const Fault& left, const Fault& right) {
                     return std::tuple(left.moment, left.nth, left.at, left.after) <
                            std::tuple(right.moment, right.nth, right.at, right.after);
                   });
  return schedule;
}

std::string Describe(const Fault& fault) {
  std::string kind(NameOf(fault.kind));
  if (fault.kind == FaultKind::kPause) {
    kind += fmt::format(" {:.2f} s", fault.pause_seconds);
  }
  return fmt::format("{} {} {}{}", When(fault), kind, fault.all ? "every " : "",
                     NameOf(fault.target));
}

std::string Describe(const Schedule& schedule) {
  const Job& job = schedule.job;
  std::string text = fmt::format("seed {}: {}, {}, {}", schedule.seed, NameOf(schedule.style),
                                 NameOf(job.table), NameOf(job.mode));
  text += job.postgres ? ", PostgreSQL" : "";
  text += job.patience > 0 ? fmt::format(", patience {}", job.patience) : "";
  text += job.checkpoints ? ", checkpoints:" : ":";
  for (const Fault& fault : schedule.faults) {
    text += fmt::format(" [{}]", Describe(fault));
  }
  return text;
}

}  // namespace sluice::chaos
