#include "elastic/job/optimum_job.h"

#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/profile.h"
#include "elastic/job/further_metrics.h"
#include "elastic/worker/optimum_search.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

constexpr double kReportSeconds = 1;

// Reports the progress of a search.
class ProgressReporter {
 public:
  explicit ProgressReporter(const TrainingJob& job) : callback_(job.progress) {
    now_.epoch = Epoch::First();
    now_.epochs = 1;
    now_.workers = 1;
    now_.rows_total = job.plan.estimated_rows();
  }

  // Until the first step, reading takes most of the time.
  void Read(int64_t rows_read) {
    now_.rows_read = rows_read;
    if (steps_ == 0) {
      now_.rows_done = rows_read;
    }
    Report(false);
  }
  // The number of steps is unknown in advance: what is reported is the fraction of the way.
  void Step(const models::LinearOptimum::Step& step, int64_t rows) {
    ++steps_;
    now_.loss = step.loss;
    now_.rows_total = rows;
    now_.rows_done = static_cast<int64_t>(step.progress * static_cast<double>(rows));
    const double seconds = SecondsBetween(started_, clock_.Now());
    now_.seconds_left = step.progress > 0 ? seconds / step.progress * (1 - step.progress) : 0;
    Report(false);
  }
  void Report(bool last) {
    const TimePoint time = clock_.Now();
    if (!callback_ || (!last && SecondsBetween(reported_, time) < kReportSeconds)) {
      return;
    }
    reported_ = time;
    const double seconds = SecondsBetween(started_, time);
    now_.rows_per_second = seconds > 0 ? static_cast<double>(now_.rows_read) / seconds : 0;
    callback_(now_);
  }
  void ReportEnd(const TrainOutcome& outcome) {
    now_.loss = outcome.loss;
    now_.metrics = outcome.metrics;
    now_.rows_done = now_.rows_total = outcome.rows_per_epoch;
    now_.seconds_left = 0;
    Report(true);
  }

 private:
  const ProgressCallback& callback_;
  const SteadyClock clock_;
  const TimePoint started_ = clock_.Now();
  TimePoint reported_ = started_;
  Progress now_;
  int steps_ = 0;
};

using Run = std::function<Result<OptimumSearch::Outcome>(OptimumSearch&)>;

Result<TrainOutcome> Train(const TrainingJob& job, const Run& run) {
  PhaseClock clock(Phase::kBatches, job.profile);
  ProgressReporter reporter(job);
  const auto read_again = [&job](const std::string& why) {
    if (job.events.on_event) {
      job.events.on_event(kRowsReadAgain, why);
    }
  };
  OptimumSearch search({.plan = job.plan,
                        .source = job.source,
                        .dataset = job.dataset,
                        .validation = job.validation,
                        .clock = &clock,
                        .rows_read_again = read_again},
                       job.stop);
  search.FinishOn(job.finish);
  search.OnRead([&reporter](int64_t rows) { reporter.Read(rows); });
  search.OnStep([&reporter](const models::LinearOptimum::Step& step, int64_t rows) {
    reporter.Step(step, rows);
  });
  Result<OptimumSearch::Outcome> found = run(search);
  if (!found.ok()) {
    reporter.Report(true);  // the progress made
    return found.status();
  }
  if (found->found.rows == 0) {
    return InvalidArgument("there are no rows to train on").SqlState("02000");
  }
  TrainOutcome outcome;
  outcome.weights = std::move(found->found.weights);
  outcome.loss = found->found.loss;
  outcome.epochs = static_cast<uint32_t>(found->found.steps);
  outcome.rows_per_epoch = found->found.rows;
  outcome.rows_trained = found->found.rows * found->found.steps;
  outcome.rows_read = found->rows_read;
  outcome.validation_rows = found->validation_rows;
  if (found->validation_rows > 0) {
    outcome.metrics = found->metrics->Values(FurtherMetrics(job.plan));
  }
  reporter.ReportEnd(outcome);
  return outcome;
}

}  // namespace

Result<TrainOutcome> TrainToOptimum(const TrainingJob& job) {
  return Train(job, [](OptimumSearch& search) { return search.Run(); });
}

Result<TrainOutcome> TrainToOptimumByFolds(const TrainingJob& job, HeldOutScores* held_out) {
  OptimumSearch::HeldOut rows;
  Result<TrainOutcome> outcome =
      Train(job, [&](OptimumSearch& search) { return search.RunByFolds(job.plan.folds(), &rows); });
  *held_out = {rows.outputs, std::move(rows.scores), std::move(rows.labels),
               std::move(rows.weights)};
  return outcome;
}

}  // namespace sluice::elastic
