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

class JobConfig;
class JobSecrets;

// Sends news of a job in a process of its own to listeners on this machine: the process that
// started it, and those that wait for it. Thread-safe; never waits for a listener.
class JobPublisher {
 public:
  // `launcher`: the inherited socket to the process that started this one.
  static Result<std::unique_ptr<JobPublisher>> Open(int launcher);
  virtual ~JobPublisher() = default;  // closes the connections
  virtual void Begun(int64_t job) = 0;
  virtual void Notice(const std::string& text) = 0;
  virtual void Progress(const elastic::Progress& progress) = 0;
  virtual void Ended(const std::string& answer) = 0;  // AnswerBytes
  // Requested when the process that started the job cancels it.
  virtual std::stop_token cancelled() const = 0;
};

// The listener's end. Not thread-safe.
class JobListener {
 public:
  struct Begun {
    int64_t job = 0;
  };
  struct Ended {
    std::string answer;
  };
  struct Gone {};     // the connection has ended; the job's row has the outcome
  struct Nothing {};  // `until` has passed, or `stop` was requested
  using News = std::variant<Nothing, Begun, std::string, elastic::Progress, Ended, Gone>;

  virtual ~JobListener() = default;
  virtual News Next(const std::stop_token& stop, std::chrono::steady_clock::time_point until) = 0;
  // Only for the process that started it.
  virtual void Cancel() = 0;
};

// Connects to the process that runs a job. Unavailable: it sends nothing, or is not on this
// machine.
Result<std::unique_ptr<JobListener>> ListenToJob(const catalog::JobRunner& runner);
// Starts a process of `binary` ("": this one) that survives the end of this one. It inherits the
// environment's password of PostgreSQL only if it needs more secrets than it is given.
Result<std::unique_ptr<JobListener>> StartJobProcess(const std::string& binary,
                                                     const JobConfig& config,
                                                     const JobSecrets& secrets);

}  // namespace sluice::executor
