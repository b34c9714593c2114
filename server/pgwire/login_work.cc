#include "server/pgwire/login_work.h"

#include <fmt/core.h>
#include <pthread.h>

#include <utility>

#include "base/guarded.h"

namespace sluice::server::pgwire {

LoginWork::LoginWork() {
  for (size_t i = 0; i < kThreads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) {
      pthread_setname_np(pthread_self(), "logins");
      Run(stop);
    });
  }
}

LoginWork::~LoginWork() = default;

Status LoginWork::Put(const std::string& role, std::function<void()> work, size_t most) {
  const MutexLock lock(mutex_);
  // A role is known here while its work waits or is being done.
  const auto [entry, is_new] = waiting_.try_emplace(role);
  if (entry->second.size() >= most) {
    return Status(Code::kResourceExhausted,
                  fmt::format("too many logins of role \"{}\" at the same time", role))
        .SqlState("53300");
  }
  entry->second.push_back(std::move(work));
  if (is_new) {
    turns_.push_back(role);
    changed_.notify_one();
  }
  return OkStatus();
}

void LoginWork::Run(const std::stop_token& stop) {
  for (;;) {
    std::string role;
    std::function<void()> work;
    {
      MutexLock lock(mutex_);
      changed_.wait(lock.native(), stop, [this]() REQUIRES(mutex_) { return !turns_.empty(); });
      if (stop.stop_requested()) {
        return;
      }
      role = std::move(turns_.front());
      turns_.pop_front();
      std::deque<std::function<void()>>& of_role = waiting_[role];
      work = std::move(of_role.front());
      of_role.pop_front();
    }
    // Logged by the callee; the client's login ends by its deadline.
    [[maybe_unused]] const Status done = Guarded("a login", work);
    work = nullptr;
    const MutexLock lock(mutex_);
    if (waiting_[role].empty()) {
      waiting_.erase(role);
    } else {
      turns_.push_back(role);
      changed_.notify_one();
    }
  }
}

}  // namespace sluice::server::pgwire
