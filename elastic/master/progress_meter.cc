#include "elastic/master/progress_meter.h"

namespace sluice::elastic {
namespace {

// Weight of the newest second in the displayed rate.
constexpr double kRateWeight = 0.5;
// A shorter interval does not give a meaningful rate.
constexpr double kRateSeconds = 0.2;

}  // namespace

void ProgressMeter::Measure(const Totals& totals, TimePoint now) {
  const double seconds = SecondsBetween(measured_at_, now);
  if (seconds < kRateSeconds && (seconds <= 0 || rate_ != 0)) {
    return;
  }
  const double rate = static_cast<double>(totals.rows - measured_.rows) / seconds;
  const auto follow = [rate](double& average) {
    average = average == 0 ? rate : average + kRateWeight * (rate - average);
  };
  follow(rate_);
  if (rate > 0) {
    follow(pace_);
  }
  if (totals.weight > measured_.weight) {
    loss_ = (totals.loss - measured_.loss) / (totals.weight - measured_.weight);
  }
  measured_at_ = now;
  measured_ = totals;
}

void ProgressMeter::EndEpoch(const Totals& totals) {
  const double weight = totals.weight - epoch_start_.weight;
  epoch_loss_ = weight > 0 ? (totals.loss - epoch_start_.loss) / weight : 0;
  epoch_start_ = totals;
}

void ProgressMeter::Restore(const Totals& epoch_start, double epoch_loss) {
  epoch_start_ = epoch_start;
  epoch_loss_ = epoch_loss;
}

void ProgressMeter::StartFrom(const Totals& totals, TimePoint now) {
  measured_at_ = now;
  measured_ = totals;
}

void ProgressMeter::BeginAgain() {
  measured_ = {};
  epoch_start_ = {};
}

}  // namespace sluice::elastic
