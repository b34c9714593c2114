#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>

#include "base/status.h"
#include "catalog/job_store.h"
#include "elastic/job/training_job.h"

namespace sluice::executor {

// What a job in a process of its own says to whoever listens on this machine: the one who has
// started it, and those who wait for it. Thread-safe; never waits for a listener.
class JobSpeaker {
 public:
  // `launcher`: the inherited end of the connection to who has started the process.
  static Result<std::unique_ptr<JobSpeaker>> Open(int launcher);
  virtual ~JobSpeaker() = default;  // hangs up
  virtual void Begun(int64_t job) = 0;
  virtual void Notice(const std::string& text) = 0;
  virtual void Progress(const elastic::Progress& progress) = 0;
  virtual void Ended(const std::string& answer) = 0;  // AnswerBytes
  // Requested when who has started the job wants it cancelled.
  virtual std::stop_token cancelled() const = 0;
};

// The other end. Not thread-safe.
class JobListener {
 public:
  struct Begun {
    int64_t job = 0;
  };
  struct Ended {
    std::string answer;
  };
  struct Gone {};     // the process has ended, or hung up; what came of the job, its row says
  struct Nothing {};  // `until` has come, or `stop` was requested
  using News = std::variant<Nothing, Begun, std::string, elastic::Progress, Ended, Gone>;

  virtual ~JobListener() = default;
  virtual News Next(const std::stop_token& stop, std::chrono::steady_clock::time_point until) = 0;
  // Of who has started the process.
  virtual void Cancel() = 0;
};

// To the process that runs a job. Unavailable: it says nothing, or not on this machine.
Result<std::unique_ptr<JobListener>> ListenToJob(const catalog::JobRunner& runner);
// Starts a process of `binary` ("": this one) that lives on when this one ends.
Result<std::unique_ptr<JobListener>> StartJobProcess(const std::string& binary,
                                                     const std::string& config,
                                                     const std::string& secret);

}  // namespace sluice::executor
