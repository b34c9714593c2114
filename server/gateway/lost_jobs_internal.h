#pragma once

#include <condition_variable>
#include <functional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "server/statements/source_pool.h"

namespace sluice::server {

// Resumes jobs whose process was lost, in the databases that a gateway has opened: at once where no
// login is required (Auth::kTrust), else when their owner logs in. Thread-safe.
class LostJobs {
 public:
  // Runs executor::TakeOverLostJobs in a session of that login.
  using Resume = std::function<Status(const Login& login, const std::stop_token& stop)>;
  LostJobs(const SourcePool& sources, Resume resume);
  ~LostJobs();

  void LoggedIn(const Login& login) EXCLUDES(mutex_);

 private:
  using Owner = std::pair<std::string, std::string>;  // database and role
  void Run(const std::stop_token& end) EXCLUDES(mutex_);
  // Owners of the jobs that wait for a login.
  std::set<Owner> FindWaiting() const;
  Login LoginOf(const Owner& owner) const;

  const SourcePool& sources_;
  const Resume resume_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::set<Owner> waited_for_ GUARDED_BY(mutex_);
  std::vector<Login> logins_ GUARDED_BY(mutex_);  // logins among those owners since the last look
  std::jthread thread_;                           // last: uses the others
};

}  // namespace sluice::server
