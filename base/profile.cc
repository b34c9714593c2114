#include "base/profile.h"

#include <numeric>

namespace sluice {
namespace {

constexpr std::array<std::string_view, kPhases> kNames = {
    "planning", "start",    "database", "decoding",  "transforming", "cache",     "rows",
    "batches",  "learning", "exchange", "optimizer", "evaluation",   "finishing", "storing"};

}  // namespace

std::string_view PhaseName(Phase phase) {
  return kNames.at(static_cast<size_t>(phase));
}

void Profile::Add(const Profile& other) {
  for (size_t i = 0; i < kPhases; ++i) {
    seconds_[i] += other.seconds_[i];
  }
}

double Profile::Total() const {
  return std::accumulate(seconds_.begin(), seconds_.end(), 0.0);
}

void ProfileSum::Add(const Profile& one) {
  const MutexLock lock(mutex_);
  sum_.Add(one);
}

void ProfileSum::Add(Phase phase, double seconds) {
  const MutexLock lock(mutex_);
  sum_.Add(phase, seconds);
}

Profile ProfileSum::Get() const {
  const MutexLock lock(mutex_);
  return sum_;
}

PhaseClock::~PhaseClock() {
  if (sum_ != nullptr) {
    sum_->Add(Read());
  }
}

Phase PhaseClock::Enter(Phase next) {
  const TimePoint now = clock_.Now();
  profile_.Add(phase_, SecondsBetween(since_, now));
  since_ = now;
  const Phase left = phase_;
  phase_ = next;
  return left;
}

void PhaseClock::Move(Phase from, Phase to, double seconds) {
  profile_.Add(from, -seconds);
  profile_.Add(to, seconds);
}

Profile PhaseClock::Read() {
  Enter(phase_);
  return profile_;
}

}  // namespace sluice
