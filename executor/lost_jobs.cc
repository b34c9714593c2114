#include "executor/lost_jobs.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/process.h"
#include "executor/job_answer.h"

namespace sluice::executor {
namespace {

constexpr double kMicros = 1e6;

bool IsGone(const catalog::JobRunner& runner) {
  if (runner.place.starts_with(kPodsPlace)) {
    return false;
  }
  const ProcessState state = FindProcess({runner.place, runner.pid, runner.started});
  if (state != ProcessState::kElsewhere) {
    return state == ProcessState::kGone;
  }
  return static_cast<double>(WallMicros() - runner.seen_micros) > kUnseenSeconds * kMicros;
}

// "step 300 in /checkpoints/m", of the last checkpoint that was written; empty: none.
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
  } else if (job.kind == "train") {
    hint += "; with engine.checkpoint_dir it would continue where it was";
  }
  return Unavailable("the process that ran the job was lost").Hint(hint);
}

Status MarkLostJobs(catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  for (const catalog::Job& job : running) {
    if (!IsGone(job.runner)) {
      continue;
    }
    const Status lost = LostJob(jobs, job);
    RETURN_IF_ERROR(jobs.Abandon(job.id, WallMicros(), catalog::JobState::kFailed, lost.ToString(),
                                 AnswerBytes(lost)));
  }
  return OkStatus();
}

}  // namespace sluice::executor
