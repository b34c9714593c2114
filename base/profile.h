#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"

namespace sluice {

// What a training spends its time on.
enum class Phase : uint8_t {
  kPlanning,      // from the statement's text to the plan, with the statistics that it needs
  kStart,         // snapshot, processes, first parameters
  kDatabase,      // waiting for the rows of the database
  kDecoding,      // rows to columns
  kTransforming,  // columns to features, and which of them validate
  kCache,         // writing rows to a local file, and reading them there in later epochs
  kRows,          // waiting for the thread that reads the rows beside
  kBatches,       // order of the rows, forming batches, and what is not listed elsewhere
  kLearning,      // forward and backward; trees: all rounds; linear optimum: the sums of a pass
  kExchange,      // pulls, pushes, sums, calls to the master, waiting for others
  kOptimizer,     // applying gradients, in the worker's own process; solving for an optimum
  kEvaluation,    // predicting the validation rows, and their metrics
  kFinishing,     // calibration, feature effects
  kStoring,       // weights into the catalog
};
inline constexpr size_t kPhases = 14;
// As it is stored and shown: "database", "evaluation".
std::string_view PhaseName(Phase phase);

// Seconds by phase.
class Profile {
 public:
  void Add(Phase phase, double seconds) { seconds_[static_cast<size_t>(phase)] += seconds; }
  void Add(const Profile& other);
  double Seconds(Phase phase) const { return seconds_[static_cast<size_t>(phase)]; }
  double Total() const;
  static Phase At(size_t index) { return static_cast<Phase>(index); }

 private:
  std::array<double, kPhases> seconds_{};
};

// The sum of several threads' profiles. Thread-safe.
class ProfileSum {
 public:
  void Add(const Profile& one) EXCLUDES(mutex_);
  void Add(Phase phase, double seconds) EXCLUDES(mutex_);
  Profile Get() const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  Profile sum_ GUARDED_BY(mutex_);
};

// A stopwatch of one thread that is in exactly one phase at each moment. Entering a phase reads the
// clock once; phases are entered for batches, not for rows.
class PhaseClock {
 public:
  // `sum`, if not null, receives the profile when this is destroyed.
  explicit PhaseClock(Phase begin, ProfileSum* sum = nullptr) : phase_(begin), sum_(sum) {}
  ~PhaseClock();
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  // Returns the phase that it leaves.
  Phase Enter(Phase next);
  // A part of the time in the first phase, which is known from elsewhere, belongs to the second.
  void Move(Phase from, Phase to, double seconds);
  Profile Read();  // until now

 private:
  const SteadyClock clock_;
  Phase phase_;
  ProfileSum* const sum_;
  TimePoint since_ = clock_.Now();
  Profile profile_;
};

// In this phase while it lives, then in the one before. Without a clock it does nothing.
class PhaseScope {
 public:
  PhaseScope(PhaseClock* clock, Phase phase)
      : clock_(clock), before_(clock == nullptr ? phase : clock->Enter(phase)) {}
  ~PhaseScope() {
    if (clock_ != nullptr) {
      clock_->Enter(before_);
    }
  }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseClock* const clock_;
  const Phase before_;
};

}  // namespace sluice
