#pragma once

#include "base/clock.h"
#include "elastic/queue/ledger.h"

namespace sluice::elastic {

// A job's speed and loss: over the last second or so, for display, and over the epochs that have
// ended. Pure; not thread-safe.
class ProgressMeter {
 public:
  using Totals = Ledger::Totals;

  explicit ProgressMeter(TimePoint now) : measured_at_(now) {}

  // The totals so far. A call too soon after the last one changes nothing.
  void Measure(const Totals& totals, TimePoint now);
  double rows_per_second() const { return rate_; }
  // The same over the time in which rows were trained: while nothing is, what is left does not
  // grow.
  double pace() const { return pace_; }
  double loss() const { return loss_; }  // mean over the rows between the last two measurements

  void EndEpoch(const Totals& totals);
  double epoch_loss() const { return epoch_loss_; }  // mean over the last epoch that has ended
  // Totals at the beginning of the current epoch.
  const Totals& epoch_start() const { return epoch_start_; }

  // Continues from another meter's state.
  void Restore(const Totals& epoch_start, double epoch_loss);
  // Rows trained before are not part of this meter's rate.
  void StartFrom(const Totals& totals, TimePoint now);
  // Training starts again, from the first row.
  void BeginAgain();

 private:
  TimePoint measured_at_;
  Totals measured_;
  double rate_ = 0, pace_ = 0;
  double loss_ = 0;
  Totals epoch_start_;
  double epoch_loss_ = 0;
};

}  // namespace sluice::elastic
