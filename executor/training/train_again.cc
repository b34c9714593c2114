#include "executor/training/train_again.h"

#include <fmt/core.h>

#include <chrono>

#include "base/clock.h"
#include "base/sleep.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/job/job_journal.h"
#include "elastic/job/training_job.h"
#include "executor/jobs/job_record.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr std::chrono::milliseconds kReturnPause{500};

}  // namespace

Status ForgetJournal(elastic::JournalStore& journal) {
  ASSIGN_OR_RETURN(const elastic::JournalTerm term, journal.BeginTerm());
  return journal.Append(term, {}, true);
}

bool MayResume(const plan::TrainPlan& plan, const JobRecord& job) {
  return (plan.has_checkpoints() || plan.new_snapshot()) && job.snapshot_lost() &&
         !job.stop_token().stop_requested();
}

Status AdviseOnSnapshot(Status ended, const JobRecord& job) {
  return ended.ok() || ended.code() == Code::kCancelled || !job.snapshot_lost() ||
                 !ended.diagnostics().front().hint.empty()
             ? ended
             : std::move(ended).Hint(
                   "WITH engine.new_snapshot=true it begins again on a new snapshot; with "
                   "engine.checkpoint_dir it continues from its newest checkpoint");
}

bool AwaitDatabase(const plan::TrainPlan& plan, catalog::JobStore& jobs, JobRecord& job,
                   Status* ended) {
  job.set_snapshot_lost(false);
  job.Announce(
      elastic::kDatabaseWaits,
      fmt::format(
          "the database is waited for, for {} seconds at most, and the training {}: {}",
          plan.database_patience_seconds(),
          plan.has_checkpoints() ? "goes on from its checkpoint" : "begins again on a new snapshot",
          ended->message()));
  elastic::JobJournal journal(jobs, job.id());
  const SteadyClock clock;
  const TimePoint begun = clock.Now();
  for (;;) {
    const Status forgotten = ForgetJournal(journal);
    if (forgotten.ok()) {
      job.Event("database_back",
                fmt::format("after {:.1f} seconds", SecondsBetween(begun, clock.Now())));
      return true;
    }
    if (!catalog::IsUnavailableForNow(forgotten) ||
        SecondsBetween(begun, clock.Now()) >= plan.database_patience_seconds()) {
      return false;
    }
    if (!SleepFor(kReturnPause, job.stop_token())) {
      *ended = Cancelled("the training was cancelled while its database was away");
      return false;
    }
  }
}

}  // namespace sluice::executor
