#include "executor/lost_jobs.h"

#include <fmt/core.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/clock.h"

namespace sluice::executor {
namespace {

constexpr double kMicros = 1e6;

// Numbers of processes mean something within one boot and one container.
std::string Place() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code error;
  const std::filesystem::path space = std::filesystem::read_symlink("/proc/self/ns/pid", error);
  return fmt::format("{} {}", boot, space.string());
}

// When the process started, in clock ticks since the boot; nullopt: there is none.
std::optional<int64_t> StartOf(int64_t pid) {
  constexpr int kFieldsAfterName = 20;  // proc(5): the name is field 2, starttime is field 22
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::ostringstream all;
  all << in.rdbuf();
  const std::string text = all.str();
  const size_t name_end = text.rfind(')');
  if (!in || name_end == std::string::npos) {
    return std::nullopt;
  }
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < kFieldsAfterName; ++i) {
    rest >> field;
    if (i == 0 && (field == "Z" || field == "X")) {
      return std::nullopt;  // it has ended
    }
  }
  return std::strtoll(field.c_str(), nullptr, 10);
}

bool IsGone(const catalog::JobRunner& runner) {
  if (runner.place == Place()) {
    return StartOf(runner.pid) != runner.started;
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
  const int64_t pid = getpid();
  return {Place(), pid, StartOf(pid).value_or(0), WallMicros()};
}

Status MarkLostJobs(catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  for (const catalog::Job& job : running) {
    if (!IsGone(job.runner)) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<catalog::JobEvent> events, jobs.Events(job.id));
    const std::string checkpoint = LastCheckpoint(events);
    std::string hint = "run the statement again";
    if (!checkpoint.empty()) {
      hint = fmt::format("run it again: it continues from {}", checkpoint);
    } else if (job.kind == "train") {
      hint += "; with engine.checkpoint_dir it would continue where it was";
    }
    const Status lost = Unavailable("the process that ran the job was lost").Hint(hint);
    RETURN_IF_ERROR(jobs.Abandon(job.id, WallMicros(), lost.ToString()));
  }
  return OkStatus();
}

}  // namespace sluice::executor
