#include "executor/training/train.h"

#include <optional>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/catalog.h"
#include "catalog/compiled_types.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/job_checkpoints.h"
#include "executor/cluster.h"
#include "executor/contest/contest.h"
#include "executor/contest/label_trials.h"
#include "executor/executor.h"
#include "executor/in_process/datasets.h"
#include "executor/in_process/train_here.h"
#include "executor/in_process/weight_decay.h"
#include "executor/jobs/begin_job.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"
#include "executor/result_rows.h"
#include "executor/scoring/bad_rows.h"
#include "executor/training/client_reporter.h"
#include "executor/training/commit_model.h"
#include "executor/training/store_model.h"
#include "executor/training/train_again.h"
#include "executor/training/train_checkpoints.h"
#include "executor/training/train_report.h"
#include "models/features/feature_transform.h"
#include "planner/explain.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// Tries several models and commits the best. A search that is stopped keeps the best so far, and
// from then on waits for nothing.
Result<TrainReport> CompeteAndCommit(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                     const Datasets& datasets, TimePoint started,
                                     const elastic::ProgressCallback& progress) {
  Result<ContestResult> won = RunContest(plan, context.source, datasets, job, progress);
  if (!won.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return won.status();
  }
  const bool stopped = job.stop_token().stop_requested();
  if (stopped && !plan.contest().search()) {
    return Cancelled("the training was cancelled");
  }
  if (stopped) {
    context.catalog.HearStop({});
    job.Announce("search_stopped", "the search was stopped: the best so far is kept");
  }
  ASSIGN_OR_RETURN(
      catalog::ModelVersion version,
      CommitModel({*won->plan, context.source, datasets.train->spec(),
                   datasets.validation == nullptr ? nullptr : &datasets.validation->spec(),
                   won->trained.weights, won->trained.outcome.rows_trained,
                   won->trained.held_out ? &*won->trained.held_out : nullptr},
                  context.catalog.models(), job, won->trained.outcome, job.stop_token()));
  return ReportOn(std::move(version), won->trained.outcome,
                  SecondsBetween(started, SteadyClock().Now()), job);
}

// Opens the dataset, trains in this process, and commits the model version in one transaction.
// Leaves nothing behind on an error.
Result<TrainReport> TrainAndCommit(plan::TrainPlan plan, Context& context, JobRecord& job,
                                   const elastic::ProgressCallback& progress,
                                   std::optional<elastic::JobCheckpoints> checkpoints) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(plan, context.source));
  job.profile().Add(Phase::kStart, SecondsBetween(started, SteadyClock().Now()));
  ReportDamaged(checkpoints, job);
  if (plan.has_contest()) {
    return CompeteAndCommit(plan, context, job, datasets, started, progress);
  }
  const Result<Trained> trained = TrainHere(plan, context.source, context.catalog, datasets, job,
                                            progress, checkpoints ? &*checkpoints : nullptr);
  if (!trained.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return trained.status();
  }
  if (job.stop_token().stop_requested()) {  // cancelled at the very end: nothing is committed
    return Cancelled("the training was cancelled");
  }
  if (const FoldChoice& choice = trained->choice; !choice.why.empty()) {
    UseWeightDecay(choice.weight_decay, &plan);
    plan.add_told(choice.why);
    job.Announce("weight_decay", choice.why);
  }
  ReportCommittingJob(checkpoints, job);
  const catalog::DatasetSpec* validation =
      datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
  ASSIGN_OR_RETURN(catalog::ModelVersion version,
                   CommitModel({plan, context.source, datasets.train->spec(), validation,
                                trained->weights, trained->outcome.rows_trained,
                                trained->held_out ? &*trained->held_out : nullptr},
                               context.catalog.models(), job, trained->outcome, job.stop_token()));
  FinishCheckpoints(checkpoints, job);
  return ReportOn(std::move(version), trained->outcome,
                  SecondsBetween(started, SteadyClock().Now()), job);
}

// Trains in this process, or through a master process. If there is a checkpoint, the plan is the
// one it was made with.
Result<TrainReport> TrainHereOrOnMaster(const plan::TrainPlan& wanted, Context& context,
                                        JobRecord& job, const elastic::ProgressCallback& progress,
                                        std::optional<elastic::JobCheckpoints> checkpoints) {
  return Guarded("training", [&]() -> Result<TrainReport> {
    plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
    if (plan.label_trials_size() > 0) {
      ASSIGN_OR_RETURN(plan,
                       ChooseLabelScale(plan, context.source, context.catalog, job, progress));
    }
    if (!OnProcesses(plan)) {
      return TrainAndCommit(plan, context, job, progress, std::move(checkpoints));
    }
    checkpoints.reset();  // the master opens them to write
    if (context.cluster == nullptr) {
      return Result<TrainReport>(
          FailedPrecondition("this session cannot start processes")
              .Hint("engine.strategy='local' trains in the session's own process"));
    }
    return context.cluster->Train(plan, context, job, progress);
  });
}

// What the training begins with stays in the catalog until the job has ended.
Status HoldCompiledForm(const plan::TrainPlan& plan, catalog::JobStore& jobs, int64_t job) {
  return plan.brought().schema() == catalog::kCompiledTypes
             ? jobs.KeepRecord(job, catalog::RecordOfForm(plan.brought().name()), "")
             : OkStatus();
}

}  // namespace

Status ExecuteTrain(const plan::TrainPlan& planned, Context& context, ResultSink& sink) {
  plan::TrainPlan plan = planned;
  if (!plan.chosen_because().empty()) {
    sink.Notice(plan.chosen_because());
  }
  for (const std::string& attribute : plan.without_effect()) {
    sink.Notice(attribute);
  }
  if (const std::string left_out = planner::DescribeLeftOut(plan); !left_out.empty()) {
    sink.Notice(left_out);
  }
  for (const std::string& note : plan.told()) {
    sink.Notice(note);
  }
  for (const std::string& warning : plan.warnings()) {
    sink.Notice("WARNING: " + warning);
  }
  const TimePoint started = SteadyClock().Now();
  // Before there is a job.
  ASSIGN_OR_RETURN(auto checkpoints, OpenCheckpoints(plan, context.catalog.models(), sink));
  ASSIGN_OR_RETURN(const auto job,
                   BeginJob(context, "train", plan.into_name(), planner::TrainResult(plan)));
  job->profile().Add(Phase::kPlanning, context.planning_seconds);
  job->profile().Add(Phase::kStart, SecondsBetween(started, SteadyClock().Now()));
  ClientReporter client(sink);
  job->OnNotice([&client](const std::string& text) { client.Notify(text); });
  context.source.HearStop(job->stop_token());
  context.catalog.HearStop(job->stop_token());
  const auto progress = [&client, &job = *job](const elastic::Progress& now) {
    job.Progress(now);
    client.Report(now);
  };
  const auto train = [&]() -> Result<TrainReport> {
    RETURN_IF_ERROR(HoldCompiledForm(plan, context.catalog.jobs(), job->id()));
    if (context.job.has_value()) {
      ASSIGN_OR_RETURN(auto stored, FindStored(context.catalog.models(), plan.into_schema(),
                                               plan.into_name(), job->id()));
      if (stored.has_value()) {
        return ReportOnStored(*std::move(stored), *job);
      }
    }
    return TrainHereOrOnMaster(plan, context, *job, progress, std::move(checkpoints));
  };
  Result<TrainReport> report = train();
  if (models::IsUnseenClass(report.status()) && context.plan_with_all_classes) {
    job->Announce("training_begins_again", report.status().message());
    Result<plan::Plan> anew = context.plan_with_all_classes();
    if (anew.ok()) {
      plan = std::move(*anew->mutable_train());
    }
    report = anew.ok() ? train() : Result<TrainReport>(anew.status());
  }
  while (!report.ok() && MayResume(plan, *job) &&
         AwaitDatabase(plan, context.catalog.jobs(), *job, report)) {
    auto newer = elastic::JobCheckpoints::Open(plan);
    report = newer.ok() ? TrainHereOrOnMaster(plan, context, *job, progress, *std::move(newer))
                        : Result<TrainReport>(newer.status());
  }
  constexpr const char* kTag = "TRAIN";
  std::optional<ResultRows> answer;
  if (report.ok()) {
    answer = AnswerOf(plan, *report);
    job->Answer(AnswerBytes(*answer, kTag));
  }
  const Status finished = job->Finish(WithBadRows(report.status(), plan.select(), context.source));
  client.Finish();
  RETURN_IF_ERROR(finished);
  RETURN_IF_ERROR(answer->SendTo(sink));
  sink.Done(kTag);
  return OkStatus();
}

}  // namespace sluice::executor
