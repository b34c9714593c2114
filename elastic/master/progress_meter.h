#pragma once

#include "base/clock.h"
#include "elastic/queue/ledger.h"

namespace sluice::elastic {

// How fast a job trains and with which loss: over the last second or so, for whoever watches it,
// and over the epochs that have ended. Pure; not thread-safe.
class ProgressMeter {
 public:
  using Totals = Ledger::Totals;

  explicit ProgressMeter(TimePoint now) : measured_at_(now) {}

  // So much has been trained by now. Called so soon again that it says nothing: changes nothing.
  void Measure(const Totals& totals, TimePoint now);
  double rows_per_second() const { return rate_; }
  double loss() const { return loss_; }  // mean over what was trained between the last two

  void EndEpoch(const Totals& totals);
  double epoch_loss() const { return epoch_loss_; }  // mean over the last one that has ended
  // Where the epoch that is open began.
  const Totals& epoch_start() const { return epoch_start_; }

  // Goes on from what another one had.
  void Restore(const Totals& epoch_start, double epoch_loss);
  // What others have trained until now is no part of this one's rate.
  void StartFrom(const Totals& totals, TimePoint now);
  // Everything is trained again, from the first row.
  void BeginAgain();

 private:
  TimePoint measured_at_;
  Totals measured_;
  double rate_ = 0;
  double loss_ = 0;
  Totals epoch_start_;
  double epoch_loss_ = 0;
};

}  // namespace sluice::elastic
