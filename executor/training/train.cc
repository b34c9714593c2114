#include "executor/training/train.h"

#include <fmt/core.h>

#include <memory>
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
#include "executor/processes/memory_place.h"
#include "executor/scoring/bad_rows.h"
#include "executor/training/client_reporter.h"
#include "executor/training/commit_model.h"
#include "executor/training/train_again.h"
#include "executor/training/train_checkpoints.h"
#include "models/features/feature_transform.h"
#include "planner/explain.h"
#include "planner/grouped_number.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// Tries several models and commits the best. A search that is stopped keeps the best so far, and
// from then on waits for nothing.
Status CompeteAndCommit(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                        const Datasets& datasets, const elastic::ProgressCallback& progress) {
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
  return CommitModel({*won->plan, context.source, datasets.train->spec(),
                      datasets.validation == nullptr ? nullptr : &datasets.validation->spec(),
                      won->trained.weights, won->trained.outcome.rows_trained,
                      won->trained.held_out ? &*won->trained.held_out : nullptr},
                     plan, context.catalog.models(), job, won->trained.outcome, job.stop_token());
}

// Opens the dataset, trains in this process, and commits the model version and the job's end in one
// transaction. Leaves nothing behind on an error.
Status TrainAndCommit(const plan::TrainPlan& wanted, Context& context, JobRecord& job,
                      const elastic::ProgressCallback& progress,
                      std::optional<elastic::JobCheckpoints> checkpoints) {
  const TimePoint started = SteadyClock().Now();
  ASSIGN_OR_RETURN(const Datasets datasets, OpenDatasets(wanted, context.source));
  job.profile().Add(Phase::kStart, SecondsBetween(started, SteadyClock().Now()));
  ReportDamaged(checkpoints, job);
  if (wanted.has_contest()) {
    return CompeteAndCommit(wanted, context, job, datasets, progress);
  }
  const Result<Trained> trained = TrainHere(wanted, context.source, context.catalog, datasets, job,
                                            progress, checkpoints ? &*checkpoints : nullptr);
  if (!trained.ok()) {
    job.set_snapshot_lost(datasets.Lost());
    return trained.status();
  }
  if (job.stop_token().stop_requested()) {  // cancelled at the very end: nothing is committed
    return Cancelled("the training was cancelled");
  }
  plan::TrainPlan plan = wanted;
  if (const FoldChoice& choice = trained->choice; !choice.why.empty()) {
    UseWeightDecay(choice.weight_decay, &plan);
    plan.add_told(choice.why);
    job.Announce("weight_decay", choice.why);
  }
  ReportCommittingJob(checkpoints, job);
  const catalog::DatasetSpec* validation =
      datasets.validation == nullptr ? nullptr : &datasets.validation->spec();
  RETURN_IF_ERROR(CommitModel(
      {plan, context.source, datasets.train->spec(), validation, trained->weights,
       trained->outcome.rows_trained, trained->held_out ? &*trained->held_out : nullptr},
      wanted, context.catalog.models(), job, trained->outcome, job.stop_token()));
  FinishCheckpoints(checkpoints, job);
  return OkStatus();
}

// The memory of a training in this process, among all of the machine.
Result<std::unique_ptr<MemoryPlace>> TakeMemory(const plan::TrainPlan& plan, Context& context,
                                                JobRecord& job) {
  Room* const room = context.cluster == nullptr ? nullptr : context.cluster->room();
  if (room == nullptr) {
    return std::unique_ptr<MemoryPlace>();
  }
  const int64_t bytes = plan.estimated_memory_bytes();
  return MemoryPlace::Take(
      *room, {fmt::format("job {}", job.id()), context.user, bytes, plan.strategy().priority()},
      job.stop_token(), [&job, bytes]() {
        job.Announce("memory_waits", fmt::format("the training waits for {}, which other jobs "
                                                 "of this machine have",
                                                 planner::FormatBytes(bytes)));
      });
}

// Trains in this process, or through a master process. If there is a checkpoint, the plan is the
// one it was made with.
Status TrainHereOrOnMaster(const plan::TrainPlan& wanted, Context& context, JobRecord& job,
                           const elastic::ProgressCallback& progress,
                           std::optional<elastic::JobCheckpoints> checkpoints) {
  return Guarded("training", [&]() -> Status {
    plan::TrainPlan plan = checkpoints.has_value() ? checkpoints->PlanToRun(wanted) : wanted;
    std::unique_ptr<MemoryPlace> memory;
    if (!OnProcesses(plan)) {
      ASSIGN_OR_RETURN(memory, TakeMemory(plan, context, job));
    }
    if (plan.label_trials_size() > 0) {
      ASSIGN_OR_RETURN(plan,
                       ChooseLabelScale(plan, context.source, context.catalog, job, progress));
    }
    if (!OnProcesses(plan)) {
      return TrainAndCommit(plan, context, job, progress, std::move(checkpoints));
    }
    checkpoints.reset();  // the master opens them to write
    if (context.cluster == nullptr) {
      return FailedPrecondition("this session cannot start processes")
          .Hint("engine.strategy='local' trains in the session's own process");
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

void BeginAgain(plan::TrainPlan* plan, JobRecord& job) {
  const std::string why =
      "the snapshot was lost with the database's connections, and the training "
      "has begun again on a new one";
  job.Announce("training_begins_again", why);
  if (plan->told().empty() || plan->told().rbegin()->compare(why) != 0) {
    plan->add_told(why);
  }
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
  const auto train = [&]() -> Status {
    RETURN_IF_ERROR(HoldCompiledForm(plan, context.catalog.jobs(), job->id()));
    return TrainHereOrOnMaster(plan, context, *job, progress, std::move(checkpoints));
  };
  Status ended = train();
  if (models::IsUnseenClass(ended) && context.plan_with_all_classes) {
    job->Announce("training_begins_again", ended.message());
    Result<plan::Plan> anew = context.plan_with_all_classes();
    if (anew.ok()) {
      plan = std::move(*anew->mutable_train());
    }
    ended = anew.ok() ? train() : anew.status();
  }
  while (!ended.ok() && MayResume(plan, *job) &&
         AwaitDatabase(plan, context.catalog.jobs(), *job, &ended)) {
    if (!plan.has_checkpoints()) {
      BeginAgain(&plan, *job);
    }
    auto newer = elastic::JobCheckpoints::Open(plan);
    ended = newer.ok() ? TrainHereOrOnMaster(plan, context, *job, progress, *std::move(newer))
                       : newer.status();
  }
  ended = AdviseOnSnapshot(std::move(ended), *job);
  const Status finished = job->Finish(WithBadRows(ended, plan.select(), context.source));
  client.Finish();
  RETURN_IF_ERROR(finished);
  return SendAnswer(job->answer(), sink);
}

}  // namespace sluice::executor
