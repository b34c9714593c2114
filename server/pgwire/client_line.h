#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/mutex.h"

namespace sluice::server::pgwire {

// Carries a statement's output from its own thread to the I/O thread, which writes to the client. A
// client that does not read holds up rows, but neither progress nor anything else. Thread-safe.
class ClientLine {
 public:
  // Passes a function to the I/O thread; called without a lock.
  using Post = std::function<void(std::function<void()>)>;
  struct Client {
    std::function<void(std::string bytes)> says;
    std::function<void()> suspended;
  };
  // `client`: called on the I/O thread, and not after Close.
  ClientLine(Post post, Client client);

  // For the statement's thread.
  // Waits while too much is unsent. False: the client is gone.
  bool Send(std::string bytes) EXCLUDES(mutex_);
  // Never waits: dropped when the client lags behind.
  void Tell(std::string bytes) EXCLUDES(mutex_);
  // Waits until the client asks for more; returns how many rows at most (0: all), or a negative
  // number if it wants none.
  int64_t Suspend() EXCLUDES(mutex_);

  // For the I/O thread.
  void Taken(size_t bytes) EXCLUDES(mutex_);
  void Resume(uint32_t max_rows) EXCLUDES(mutex_);
  void Close() EXCLUDES(mutex_);

 private:
  const Post post_;
  const std::shared_ptr<Client> client_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  size_t on_its_way_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  bool suspended_ GUARDED_BY(mutex_) = false;
  int64_t next_rows_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::server::pgwire
