#include "server/gateway/first_messages.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/client_address.h"

namespace sluice::server {

FirstMessages::FirstMessages(std::chrono::milliseconds longest)
    : longest_(longest), watcher_([this](const std::stop_token& end) {
        pthread_setname_np(pthread_self(), "first messages");
        Watch(end);
      }) {}

FirstMessages::~FirstMessages() = default;

FirstMessages::Wait::~Wait() {
  const MutexLock lock(calls_.mutex_);
  calls_.calls_.erase(call_);
}

FirstMessages::Wait FirstMessages::Begin(const std::string& address, std::function<void()> cancel) {
  std::string network = NetworkOf(address);
  const MutexLock lock(mutex_);
  CancelOldest(&network, kMostOfAddress);
  CancelOldest(nullptr, kMost);
  calls_.push_back({std::move(network), std::chrono::steady_clock::now(), std::move(cancel)});
  changed_.notify_all();
  return Wait(*this, std::prev(calls_.end()));
}

void FirstMessages::CancelOldest(const std::string* network, size_t most) {
  const auto waits = [network](const Call& call) {
    return call.cancel && (network == nullptr || call.network == *network);
  };
  if (static_cast<size_t>(std::count_if(calls_.begin(), calls_.end(), waits)) >= most) {
    const auto oldest = std::find_if(calls_.begin(), calls_.end(), waits);
    std::exchange(oldest->cancel, nullptr)();
  }
}

void FirstMessages::Watch(const std::stop_token& end) {
  MutexLock lock(mutex_);
  while (!end.stop_requested()) {
    const auto now = std::chrono::steady_clock::now();
    auto next = now + longest_;
    for (Call& call : calls_) {
      if (call.cancel && call.since + longest_ <= now) {
        std::exchange(call.cancel, nullptr)();
      } else if (call.cancel) {
        next = std::min(next, call.since + longest_);
      }
    }
    changed_.wait_until(lock.native(), end, next, [] { return false; });
  }
}

}  // namespace sluice::server
