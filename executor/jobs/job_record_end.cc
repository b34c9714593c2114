// How a job's record ends.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/sql/sqlstate.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_record.h"

namespace sluice::executor {

Status JobRecord::Finish(const Status& ended) {
  Leave();
  RecordProfile();
  if (taken_over_) {
    return Status(Code::kAborted, fmt::format("another process continues job {}", job_.id));
  }
  if (suspends_ && !ended.ok()) {
    TakePoint(true);
    RETURN_IF_ERROR(Write());
    WriteNotices();
    RETURN_IF_ERROR(jobs_->SetSuspended(job_.id, true));
    return ended;
  }
  const Status outcome = reason_ ? reason_(ended) : ended;
  TakePoint(true);
  Status recorded = Write();
  if (succeeded_) {
    if (hand_over_ && !recorded.ok()) {
      HandOverTheRest();
    }
    return OkStatus();
  }
  SetOutcome(outcome);
  if (recorded.ok()) {
    recorded = jobs_->End(job_);
  }
  if (catalog::IsJobOver(recorded)) {
    return OutcomeInCatalog(outcome);
  }
  const bool gave_up = give_up_.stop_requested() && recorded.code() == Code::kCancelled;
  if (hand_over_ && (gave_up || catalog::MayBeWrittenLater(recorded))) {
    log::Warn("job={} end is recorded later: {}", job_.id, recorded.ToString());
    HandOverTheRest();
    return outcome;
  }
  if (outcome.ok()) {
    return recorded;
  }
  if (!recorded.ok()) {
    log::Error("job={} end not recorded: {}", job_.id, recorded.ToString());
  }
  return outcome;
}

void JobRecord::HandOverTheRest() {
  const MutexLock lock(mutex_);
  hand_over_(job_, news_.events());
}

void JobRecord::SetOutcome(const Status& outcome) {
  job_.finished_micros = WallMicros();
  if (outcome.ok()) {
    job_.state = catalog::JobState::kSucceeded;
    job_.answer = WithLastNotices(std::move(job_.answer));
    return;
  }
  job_.state = outcome.code() == Code::kCancelled ? catalog::JobState::kCancelled
                                                  : catalog::JobState::kFailed;
  job_.error = outcome.ToString();
  job_.answer = WithLastNotices(AnswerBytes(outcome));
  job_.rows_read = std::max<int64_t>(job_.rows_read, rows_read_);
  job_.rows_trained = std::max<int64_t>(job_.rows_trained, rows_trained_);
}

catalog::Job JobRecord::Success(std::string answer) {
  catalog::Job ended = job_;
  ended.finished_micros = WallMicros();
  ended.state = catalog::JobState::kSucceeded;
  ended.answer = WithLastNotices(std::move(answer));
  return ended;
}

void JobRecord::HasSucceeded(std::string answer) {
  job_.answer = std::move(answer);
  SetOutcome(OkStatus());
  succeeded_ = true;
}

Status JobRecord::OutcomeInCatalog(const Status& outcome) {
  ASSIGN_OR_RETURN(const catalog::Job now, jobs_->Find(job_.id));
  if (!catalog::HasEnded(now.state)) {
    return Status(Code::kAborted, fmt::format("another process continues job {}", job_.id));
  }
  // Other errors are no end that anybody has recorded.
  const bool open = outcome.ok() || catalog::IsJobOver(outcome) ||
                    catalog::IsConnectionLost(outcome) || outcome.code() == Code::kCancelled;
  if (!open) {
    return outcome;
  }
  ASSIGN_OR_RETURN(job_.answer, jobs_->Answer(job_.id));
  if (now.state == catalog::JobState::kSucceeded) {
    return OkStatus();
  }
  const Status kept = ErrorOfAnswer(job_.answer);
  return kept.ok() ? Status(Code::kFailedPrecondition, now.error) : kept;
}

}  // namespace sluice::executor
