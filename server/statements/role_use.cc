#include "server/statements/role_use.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

namespace sluice::server {
namespace {

constexpr double kSecondsOfMinute = 60;
// Roles whose statements are counted; more are kept only while their counts matter.
constexpr size_t kKeptRoles = 10'000;

std::string Plural(int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

std::string WhoMayChange(std::string_view limit) {
  return fmt::format("the gateway's operator sets the limit (--role-limits {}=...)", limit);
}

}  // namespace

RoleUse::Session::~Session() {
  if (of_ == nullptr || role_.empty()) {
    return;
  }
  const MutexLock lock(of_->mutex_);
  const auto counted = of_->sessions_.find(role_);
  if (--counted->second == 0) {
    of_->sessions_.erase(counted);
  }
}

Result<RoleUse::Session> RoleUse::BeginSession(const std::string& role) {
  if (role.empty()) {
    return Session(this, role);
  }
  const MutexLock lock(mutex_);
  const auto known = sessions_.find(role);
  const int64_t open = known == sessions_.end() ? 0 : known->second;
  if (most_.sessions > 0 && open >= most_.sessions) {
    return ResourceExhausted(fmt::format("role \"{}\" has {} at this gateway, the limit for one "
                                         "role",
                                         role, Plural(open, "session")))
        .SqlState("53300")
        .Hint("end one, or try again later; " + WhoMayChange("sessions"));
  }
  sessions_[role] = open + 1;
  return Session(this, role);
}

Status RoleUse::BeginStatement(const std::string& role, TimePoint now) {
  if (role.empty() || most_.statements == 0) {
    return OkStatus();
  }
  const MutexLock lock(mutex_);
  const double most = static_cast<double>(most_.statements);
  const auto left = [&](const Statements& counted) {
    return counted.run - SecondsBetween(counted.last, now) * most / kSecondsOfMinute;
  };
  if (statements_.size() >= kKeptRoles) {
    std::erase_if(statements_, [&](const auto& entry) { return left(entry.second) <= 0; });
  }
  Statements& counted = statements_[role];
  const double run = std::max(0.0, left(counted));
  if (run + 1 > most) {
    return ResourceExhausted(fmt::format("role \"{}\" has run {} in the last minute, the limit for "
                                         "one role",
                                         role, Plural(most_.statements, "statement")))
        .SqlState("53400")
        .Hint("try again later; " + WhoMayChange("statements"));
  }
  counted = {run + 1, now};
  return OkStatus();
}

RoleUse::Beginning::~Beginning() {
  if (of_ == nullptr || role_.empty()) {
    return;
  }
  const MutexLock lock(of_->mutex_);
  const auto counted = of_->beginning_.find(role_);
  counted->second.erase(number_);
  if (counted->second.empty()) {
    of_->beginning_.erase(counted);
  }
  of_->job_begun_.notify_all();
}

Status RoleUse::TooManyJobs(const std::string& role, int64_t run) {
  return ResourceExhausted(
             fmt::format("role \"{}\" runs {}, the limit for one role", role, Plural(run, "job")))
      .SqlState("53300")
      .Hint("WAIT JOB waits for one; " + WhoMayChange("jobs"));
}

Result<RoleUse::Beginning> RoleUse::BeginJob(const std::string& role,
                                             const std::function<Result<int64_t>()>& running,
                                             const std::stop_token& stop) {
  if (role.empty() || most_.jobs == 0) {
    return Beginning(this, "", 0);
  }
  int64_t number = 0;
  {
    const MutexLock lock(mutex_);
    number = ++begun_;
    beginning_[role].insert(number);
  }
  Beginning beginning(this, role, number);
  while (true) {
    int64_t before = 0;
    {
      const MutexLock lock(mutex_);
      const std::set<int64_t>& all = beginning_[role];
      before = std::distance(all.begin(), all.find(number));
    }
    // Counted afterwards: one that has begun meanwhile is counted twice, not missed.
    ASSIGN_OR_RETURN(const int64_t run, running());
    if (run + before < most_.jobs) {
      return beginning;
    }
    if (before == 0) {
      return TooManyJobs(role, run);
    }
    MutexLock lock(mutex_);
    job_begun_.wait(lock.native(), stop, [&]() REQUIRES(mutex_) {
      const std::set<int64_t>& all = beginning_[role];
      return std::distance(all.begin(), all.find(number)) < before;
    });
    if (stop.stop_requested()) {
      return Cancelled("cancelled while other jobs of the role began").SqlState("57014");
    }
  }
}

}  // namespace sluice::server
