#include <pthread.h>

#include <chrono>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "executor/jobs/lost_jobs.h"
#include "server/gateway/lost_jobs_internal.h"

namespace sluice::server {
namespace {

// One query to each database; nothing waits for it, since statements about a job look for
// themselves.
constexpr std::chrono::seconds kLook{5};

}  // namespace

LostJobs::LostJobs(const SourcePool& sources, Resume resume)
    : sources_(sources),
      resume_(std::move(resume)),
      thread_([this](const std::stop_token& end) { Run(end); }) {}

LostJobs::~LostJobs() = default;

void LostJobs::LoggedIn(const Login& login) {
  const MutexLock lock(mutex_);
  // The gateway's own URL may name the same database, too. Erase once, whatever comes of it: the
  // next look finds out whether a job still waits.
  if (waited_for_.erase({login.database, login.role}) + waited_for_.erase({"", login.role}) > 0) {
    logins_.push_back(login);
    changed_.notify_all();
  }
}

std::set<LostJobs::Owner> LostJobs::FindWaiting() const {
  std::set<Owner> owners;
  for (const auto& [database, catalog] : sources_.Catalogs()) {
    const auto waiting = executor::FindWaitingJobs(catalog->jobs());
    if (!waiting.ok()) {
      log::Debug("jobs that were lost cannot be looked for: {}", waiting.status().ToString());
      continue;
    }
    for (const executor::WaitingJob& one : *waiting) {
      owners.emplace(database, one.job.owner);
    }
  }
  return owners;
}

Login LostJobs::LoginOf(const Owner& owner) const {
  const auto& [database, role] = owner;
  const bool own = database.empty() && role == sources_.catalog().principal().role;
  Login login;
  login.role = own ? "" : role;
  login.database = database;
  login.proven = !sources_.logs_in();
  return login;
}

void LostJobs::Run(const std::stop_token& end) {
  pthread_setname_np(pthread_self(), "lost jobs");
  while (!end.stop_requested()) {
    std::vector<Login> logins;
    const Status looked = Guarded("looking for lost jobs", [&]() -> Status {
      std::set<Owner> owners = FindWaiting();
      if (!sources_.logs_in()) {
        for (const Owner& owner : owners) {
          logins.push_back(LoginOf(owner));
        }
        return OkStatus();
      }
      const MutexLock lock(mutex_);
      waited_for_ = std::move(owners);
      return OkStatus();
    });
    if (looked.ok() && logins.empty()) {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), end, kLook,
                        [this]() REQUIRES(mutex_) { return !logins_.empty(); });
      logins.swap(logins_);
    }
    for (const Login& login : logins) {
      const Status gone_on =
          Guarded("going on with lost jobs", [&] { return resume_(login, end); });
      if (!gone_on.ok()) {
        log::Warn("jobs of {} cannot go on: {}", login.role, gone_on.ToString());
      }
    }
    if (!logins.empty() || !looked.ok()) {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), end, kLook, [] { return false; });
    }
  }
}

}  // namespace sluice::server
