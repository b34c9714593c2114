#include "executor/jobs/lost_jobs.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/letter_case.h"
#include "base/process.h"
#include "catalog/sql/sql_text.h"
#include "executor/jobs/job_answer.h"

namespace sluice::executor {
namespace {

constexpr double kMicros = 1e6;

bool IsSilent(const catalog::JobRunner& runner) {
  return static_cast<double>(WallMicros() - runner.seen_micros) > kUnseenSeconds * kMicros;
}

bool IsGone(const catalog::JobRunner& runner) {
  if (runner.place.starts_with(kPodsPlace)) {
    return false;
  }
  const ProcessState state = FindProcess({runner.place, runner.pid, runner.started});
  if (state != ProcessState::kElsewhere) {
    return state == ProcessState::kGone;
  }
  return IsSilent(runner);
}

// How often the job was taken over since its last checkpoint.
int FailedTakeovers(const std::vector<catalog::JobEvent>& events) {
  int in_vain = 0;
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == "checkpoint_written") {
      break;
    }
    in_vain += event->kind == kTakenOverEvent ? 1 : 0;
  }
  return in_vain;
}

// What a process needs to continue the job; nullopt: it was not stored.
Result<std::optional<std::string>> StatementOf(catalog::JobStore& jobs, int64_t job) {
  ASSIGN_OR_RETURN(auto records, jobs.Records(job, kStatementRecord));
  const auto statement = records.find(kStatementRecord);
  return statement == records.end() ? std::nullopt
                                    : std::optional<std::string>(std::move(statement->second));
}

Status GiveUp(catalog::JobStore& jobs, int64_t job, const Status& why) {
  return jobs.Abandon(job, WallMicros(), catalog::JobState::kFailed, why.ToString(),
                      AnswerBytes(why));
}

// "step 300 in /checkpoints/m" for the newest checkpoint; empty: none.
std::string LastCheckpoint(const std::vector<catalog::JobEvent>& events) {
  for (auto event = events.rbegin(); event != events.rend(); ++event) {
    if (event->kind == "checkpoint_written") {
      return event->detail.substr(0, event->detail.rfind(" (checkpoint-"));
    }
  }
  return "";
}

}  // namespace

catalog::JobRunner ThisProcess() {
  const ProcessIdentity process = CurrentProcess();
  return {process.place, process.pid, process.started, WallMicros()};
}

Status LostJob(catalog::JobStore& jobs, const catalog::Job& job) {
  const auto events = jobs.Events(job.id);
  const std::string checkpoint = events.ok() ? LastCheckpoint(*events) : "";
  std::string hint = "run the statement again";
  if (!checkpoint.empty()) {
    hint = fmt::format("run it again: it continues from {}", checkpoint);
  } else if (LowerAscii(job.statement).find("engine.checkpoint_dir") != std::string::npos) {
    // The event of the newest checkpoint may have been lost with the process.
    hint = "run it again: it continues from the newest checkpoint in its engine.checkpoint_dir";
  } else if (job.kind == "train") {
    hint += "; with engine.checkpoint_dir it would continue where it was";
  }
  return Unavailable("the process that ran the job was lost").Hint(hint);
}

Result<std::vector<WaitingJob>> FindWaitingJobs(catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(std::vector<catalog::Job> running, jobs.Running());
  std::vector<WaitingJob> waiting;
  for (catalog::Job& job : running) {
    if (!IsGone(job.runner)) {
      continue;
    }
    ASSIGN_OR_RETURN(std::optional<std::string> statement, StatementOf(jobs, job.id));
    if (!statement.has_value()) {
      RETURN_IF_ERROR(GiveUp(jobs, job.id, LostJob(jobs, job)));
      continue;
    }
    ASSIGN_OR_RETURN(const bool cancelled, jobs.CancelRequested(job.id));
    if (cancelled) {
      const Status outcome = Cancelled("the job was cancelled while it had no process");
      job.state = catalog::JobState::kCancelled;
      job.finished_micros = WallMicros();
      job.error = outcome.ToString();
      job.answer = AnswerBytes(outcome);
      const Status ended = jobs.End(job);
      if (!ended.ok() && !catalog::IsJobOver(ended)) {
        return ended;
      }
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, jobs.Events(job.id));
    if (FailedTakeovers(events) >= kMaxTakeovers) {
      const Status lost = LostJob(jobs, job).Because(fmt::format(
          "{} processes were lost one after the other, and none came as far as a checkpoint",
          kMaxTakeovers + 1));
      RETURN_IF_ERROR(GiveUp(jobs, job.id, lost));
      continue;
    }
    waiting.push_back({std::move(job), *std::move(statement)});
  }
  return waiting;
}

Status MarkLostJobs(catalog::JobStore& jobs) {
  return FindWaitingJobs(jobs).status();
}

Status LeaveJobsOfThisPlace(catalog::JobStore& jobs) {
  const std::string place = CurrentProcess().place;
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  Status left;
  for (const catalog::Job& job : running) {
    if (job.runner.place == place) {
      catalog::JobRunner unseen = job.runner;
      unseen.seen_micros = 0;
      left.Add(jobs.Seen(job.id, unseen).status());
    }
  }
  return left;
}

bool IsSilentOnPods(const catalog::JobRunner& runner) {
  return runner.place.starts_with(kPodsPlace) && IsSilent(runner);
}

Result<bool> CanBeTakenOver(catalog::JobStore& jobs, int64_t job) {
  ASSIGN_OR_RETURN(const auto statement, StatementOf(jobs, job));
  return statement.has_value();
}

std::string WhatFor(const WaitingJob& waiting) {
  return waiting.job.owner.empty()
             ? "a gateway or a shell that starts it again: its process was lost"
             : fmt::format("its owner, {}, to log in: its process was lost", waiting.job.owner);
}

}  // namespace sluice::executor
