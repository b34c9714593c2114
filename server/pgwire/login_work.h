#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::server::pgwire {

// The part of logins that takes a while, deriving keys from a password as often as its role's
// verifier asks for, beside the door's own thread. Of each role one piece is done after the other,
// and roles take turns: many logins of one role delay nobody else's. Thread-safe.
class LoginWork {
 public:
  static constexpr size_t kThreads = 2;
  // Pieces of one role that wait.
  static constexpr size_t kMostOfRole = 16;

  LoginWork();
  ~LoginWork();  // drops what waits
  LoginWork(const LoginWork&) = delete;
  LoginWork& operator=(const LoginWork&) = delete;

  // 53300: too much of that role waits.
  Status Put(const std::string& role, std::function<void()> work) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);

  Mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, std::deque<std::function<void()>>> waiting_ GUARDED_BY(mutex_);
  std::deque<std::string> turns_
      GUARDED_BY(mutex_);              // roles with work, none of which is being done
  std::vector<std::jthread> threads_;  // last: use the members above
};

}  // namespace sluice::server::pgwire
