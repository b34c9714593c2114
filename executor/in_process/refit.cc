#include "executor/in_process/refit.h"

#include <utility>

#include "executor/in_process/fixed_schedule.h"
#include "executor/in_process/training_stages.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

Result<Trained> TrainAndRefit(const elastic::TrainingJob& job) {
  TrainingStages stages(job.progress, 2);
  const elastic::ProgressCallback progress = [&stages](const elastic::Progress& now) {
    stages.Report(now);
  };
  const auto train = [&](const plan::TrainPlan& plan) {
    return TrainOnce({.plan = plan,
                      .source = job.source,
                      .dataset = job.dataset,
                      .base = job.base,
                      .progress = progress,
                      .events = job.events,
                      .stop = job.stop,
                      .profile = job.profile});
  };
  ASSIGN_OR_RETURN(Trained judged, train(job.plan));
  ASSIGN_OR_RETURN(ScoredRows held_out, ScoreValidation(job.plan, job.source, job.dataset, nullptr,
                                                        judged.weights, job.stop));
  if (held_out.rows() == 0) {
    return judged;  // which has then seen all rows
  }
  stages.Next();
  plan::TrainPlan whole = job.plan;
  whole.clear_split();
  FixLength(BestEpoch(judged.outcome), judged.outcome, &whole);
  ASSIGN_OR_RETURN(Trained refitted, train(whole));
  refitted.outcome.metrics = std::move(judged.outcome.metrics);
  refitted.outcome.validation_rows = judged.outcome.validation_rows;
  refitted.outcome.rows_read += judged.outcome.rows_read;
  refitted.held_out = std::move(held_out);
  return refitted;
}

}  // namespace sluice::executor
