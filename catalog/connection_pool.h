#pragma once

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace sluice::catalog {

// A bounded number of connections, kept open between uses. Connection has `bool Recycle()`, which
// begins to undo its user's changes, and `bool Ready()`, which waits for that; if either returns
// false the connection is closed instead of kept. Thread-safe; must outlive its leases.
template <typename Connection>
class ConnectionPool {
 public:
  using Open = std::function<Result<std::unique_ptr<Connection>>(std::stop_token stop)>;

  // A process holds one connection for each reader, the snapshot, the writer, and each statement
  // running at the moment; PostgreSQL's own default limit is 100 in total.
  static constexpr size_t kMaxConnections = 32;
  static constexpr std::chrono::seconds kMaxWait{30};

  explicit ConnectionPool(Open open) : open_(std::move(open)) {}

  // Gives its connection back when destroyed.
  class Lease {
   public:
    Lease() = default;
    Lease(ConnectionPool* pool, std::unique_ptr<Connection> connection)
        : pool_(pool), connection_(std::move(connection)) {}
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), connection_(std::move(other.connection_)) {}
    Lease& operator=(Lease&& other) noexcept {
      if (this != &other) {
        Release();
        pool_ = std::exchange(other.pool_, nullptr);
        connection_ = std::move(other.connection_);
      }
      return *this;
    }
    ~Lease() { Release(); }

    Connection& operator*() const { return *connection_; }
    Connection* operator->() const { return connection_.get(); }
    explicit operator bool() const { return connection_ != nullptr; }
    // Closes the connection instead of keeping it for others.
    void Discard() {
      connection_.reset();
      Release();
    }

   private:
    void Release() {
      if (ConnectionPool* pool = std::exchange(pool_, nullptr)) {
        pool->GiveBack(std::move(connection_));
      }
    }
    ConnectionPool* pool_ = nullptr;
    std::unique_ptr<Connection> connection_;
  };

  // `stop` ends the wait for a connection, also for a new one from the server.
  Result<Lease> Take(const std::stop_token& stop = {}) {
    {
      MutexLock lock(mutex_);
      const auto free = [this]() REQUIRES(mutex_) { return used_ < kMaxConnections; };
      if (!freed_.wait_for(lock.native(), stop, kMaxWait, free)) {
        if (stop.stop_requested()) {
          return Cancelled("the statement was cancelled");
        }
        return ResourceExhausted(
                   fmt::format("all {} database connections of this process are in use",
                               kMaxConnections))
            .SqlState("53300");
      }
      ++used_;
    }
    while (std::unique_ptr<Connection> connection = TakeIdle()) {
      if (connection->Ready()) {
        return Lease(this, std::move(connection));
      }
    }
    Result<std::unique_ptr<Connection>> opened = open_(stop);
    if (!opened.ok()) {
      GiveBack(nullptr);
      return opened.status();
    }
    return Lease(this, std::move(opened).value());
  }

 private:
  std::unique_ptr<Connection> TakeIdle() {
    MutexLock lock(mutex_);
    if (idle_.empty()) {
      return nullptr;
    }
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  void GiveBack(std::unique_ptr<Connection> connection) {
    if (connection != nullptr && !connection->Recycle()) {
      connection.reset();
    }
    {
      MutexLock lock(mutex_);
      --used_;
      if (connection != nullptr) {
        idle_.push_back(std::move(connection));
      }
    }
    freed_.notify_one();
  }

  Open open_;
  Mutex mutex_;
  std::condition_variable_any freed_;
  std::vector<std::unique_ptr<Connection>> idle_ GUARDED_BY(mutex_);
  size_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace sluice::catalog
