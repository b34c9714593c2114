#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server {

// Counts what each role takes of a gateway, at all its doors, and refuses more than it may. A role
// named "" has no limits. Bounded memory. Thread-safe.
class RoleUse {
 public:
  struct Most {  // of one role; 0: no limit
    int64_t sessions = 0;
    int64_t jobs = 0;
    int64_t statements = 0;  // a minute
  };
  explicit RoleUse(const Most& most) : most_(most) {}

  // One session of a role, until it is destroyed.
  class Session {
   public:
    Session(RoleUse* of, std::string role) : of_(of), role_(std::move(role)) {}
    ~Session();
    Session(Session&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), role_(std::move(other.role_)) {}
    Session& operator=(Session&&) = delete;

   private:
    RoleUse* of_;
    std::string role_;
  };
  // 53300: the role has as many as it may.
  Result<Session> BeginSession(const std::string& role) EXCLUDES(mutex_);

  // 53400: the role has run as many in the last minute as it may. Those are forgotten steadily, not
  // all at the end of a minute.
  Status BeginStatement(const std::string& role, TimePoint now) EXCLUDES(mutex_);

  // A job of a role that is about to begin, until it is destroyed.
  class Beginning {
   public:
    Beginning(RoleUse* of, std::string role, int64_t number)
        : of_(of), role_(std::move(role)), number_(number) {}
    ~Beginning();
    Beginning(Beginning&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)),
          role_(std::move(other.role_)),
          number_(other.number_) {}
    Beginning& operator=(Beginning&&) = delete;

   private:
    RoleUse* of_;
    std::string role_;
    int64_t number_;
  };
  // `running`: the jobs of the role that the catalog knows. Keep the Beginning until the catalog
  // knows this one, too. Where room depends on jobs of the role that are beginning, waits for them.
  // 53300: the role has as many jobs as it may; 57014: `stop`.
  Result<Beginning> BeginJob(const std::string& role,
                             const std::function<Result<int64_t>()>& running,
                             const std::stop_token& stop) EXCLUDES(mutex_);

 private:
  struct Statements {
    double run = 0;  // in the last minute
    TimePoint last{0};
  };
  static Status TooManyJobs(const std::string& role, int64_t run);

  const Most most_;
  Mutex mutex_;
  std::map<std::string, int64_t> sessions_ GUARDED_BY(mutex_);
  std::map<std::string, Statements> statements_ GUARDED_BY(mutex_);
  std::map<std::string, std::set<int64_t>> beginning_ GUARDED_BY(mutex_);  // in order
  int64_t begun_ GUARDED_BY(mutex_) = 0;
  std::condition_variable_any job_begun_;
};

}  // namespace sluice::server
