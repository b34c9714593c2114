#include "executor/training/train_on_processes.h"

#include <optional>

#include "base/clock.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "elastic/job/job_checkpoints.h"
#include "executor/contest/contest_clock.h"
#include "executor/jobs/job_record.h"
#include "executor/training/commit_model.h"
#include "executor/training/search_on_fleet.h"
#include "executor/training/train_checkpoints.h"
#include "executor/training/train_report.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// From the stop of a search until its best model is stored, at most; a master that is asked to stop
// is killed a while later.
constexpr double kKeepSeconds = 2;

Status SearchAndCommit(const plan::TrainPlan& plan, catalog::DataSource& source,
                       catalog::Catalog& catalog, JobRecord& job, const TrainingFleet& place,
                       const elastic::ProgressCallback& progress) {
  const auto commit = [&](const ContestResult& won, const std::stop_token& stop) {
    return CommitModel({*won.plan, source, place.dataset, place.validation, won.trained.weights,
                        won.trained.outcome.rows_trained},
                       plan, catalog.models(), job, won.trained.outcome, stop);
  };
  ASSIGN_OR_RETURN(const ContestResult won,
                   SearchOnFleet(plan, source, catalog.jobs(), job, place, progress));
  Status committed = Cancelled("the search was stopped");
  if (!job.stop_token().stop_requested()) {
    committed = commit(won, job.stop_token());
  }
  if (!committed.ok() && job.stop_token().stop_requested() && plan.contest().search()) {
    RETURN_IF_ERROR(CheckWanted(place));
    catalog.HearStop({});
    source.HearStop({});
    job.Announce("search_stopped", "the search was stopped: the best so far is kept");
    const SoftLimit limit({}, kKeepSeconds, true);
    committed = commit(won, limit.finish());
  }
  return committed;
}

}  // namespace

Status TrainOnProcesses(const plan::TrainPlan& plan, catalog::DataSource& source,
                        catalog::Catalog& catalog, JobRecord& job, const TrainingFleet& place,
                        const elastic::ProgressCallback& progress) {
  if (plan.has_contest()) {
    return SearchAndCommit(plan, source, catalog, job, place, progress);
  }
  if (place.endpoint.term == elastic::Term::First()) {
    job.profile().Add(Phase::kStart, SecondsUntil(WallMicros(), job));
  }
  ASSIGN_OR_RETURN(const auto start, StartOf(plan, catalog));
  ASSIGN_OR_RETURN(std::optional<elastic::JobCheckpoints> checkpoints,
                   elastic::JobCheckpoints::Open(plan));
  catalog::DatasetSpec data = place.dataset;
  if (checkpoints.has_value()) {
    ASSIGN_OR_RETURN(data, checkpoints->DataToRun(place.dataset, place.validation));
    ReportDamaged(checkpoints, job);
  }
  elastic::Succession succession;
  succession.journal = &place.journal;
  succession.commit = [&](const elastic::TrainOutcome& outcome) -> Status {
    ReportCommittingJob(checkpoints, job);
    const std::string weights = outcome.Stored();
    return CommitModel(
        {plan, source, place.dataset, place.validation, weights, outcome.rows_trained}, plan,
        catalog.models(), job, outcome, job.stop_token());
  };
  RETURN_IF_ERROR(
      elastic::TrainOnFleet({.plan = plan,
                             .source = source,
                             .dataset = data,
                             .validation = place.validation,
                             .base = start.has_value() ? &*start : nullptr,
                             .progress = progress,
                             .events = EventsOf(job),
                             .stop = job.stop_token(),
                             .suspend = place.suspend,
                             .suspended = place.suspended,
                             .held = place.held,
                             .used = place.used,
                             .profile = &job.profile(),
                             .checkpoints = checkpoints.has_value() ? &*checkpoints : nullptr},
                            place.fleet, place.endpoint, succession)
          .status());
  FinishCheckpoints(checkpoints, job);
  return OkStatus();
}

}  // namespace sluice::executor
