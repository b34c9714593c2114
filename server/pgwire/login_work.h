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

// The parts of logins that take a while, beside the door's own thread: deriving keys from a
// password as often as its role's verifier asks for, and TLS's handshakes. Of each role (of
// handshakes, of each network) one piece is done after the other, and they take turns: many logins
// of one delay nobody else's. Thread-safe.
class LoginWork {
 public:
  static constexpr size_t kThreads = 2;
  // Pieces of one role that wait, where Put does not say otherwise.
  static constexpr size_t kMostOfRole = 16;

  LoginWork();
  ~LoginWork();  // drops what waits
  LoginWork(const LoginWork&) = delete;
  LoginWork& operator=(const LoginWork&) = delete;

  // 53300: `most` pieces of that role wait.
  Status Put(const std::string& role, std::function<void()> work, size_t most = kMostOfRole)
      EXCLUDES(mutex_);

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
