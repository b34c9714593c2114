#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "elastic/fleet/fleet.h"
#include "elastic/job/process.h"
#include "tests/support/memory_source.h"

namespace sluice::elastic {

// Workers and parameter servers as threads that use real gRPC on loopback, over an in-memory
// source.
class ThreadFleet final : public Fleet {
 public:
  explicit ThreadFleet(testing::MemorySource& source) : source_(source) {}
  ~ThreadFleet() override {
    std::map<std::string, std::jthread> threads;
    {
      const std::lock_guard lock(mutex_);
      threads.swap(threads_);
    }
    for (auto& [name, thread] : threads) {
      thread.request_stop();
    }
  }

  // Processes of the role end at once, as where a node does not have their image.
  void RefuseImage(Role role) { refused_ = role; }
  // Launching `name` blocks until it is released, or for a minute.
  void Hold(const std::string& name) { held_ = name; }
  void LetGo() { go_.set_value(); }
  bool held_too_long() const { return held_too_long_; }

  Status Launch(const ProcessSpec& spec) override {
    if (spec.name == held_) {
      held_too_long_ =
          go_.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::timeout;
    }
    const std::lock_guard lock(mutex_);
    // A process of that name may live on, where its node does not answer.
    if (std::find(launched_.begin(), launched_.end(), spec.name) != launched_.end()) {
      return AlreadyExists("a process named '" + spec.name + "' already exists");
    }
    launched_.push_back(spec.name);
    if (spec.role == refused_) {
      FleetEvent event;
      event.kind = FleetEvent::Kind::kExited;
      event.name = spec.name;
      event.role = spec.role;
      event.exit_code = 126;
      event.exit_class = ExitClass::kConfiguration;
      event.message = "ErrImageNeverPull: sluice is not present";
      telling_.emplace_back([this, event] { watcher_(event); });
      return Status();
    }
    const auto lost = std::make_shared<std::atomic<bool>>(false);
    lost_[spec.name] = lost;
    threads_[spec.name] = std::jthread([this, spec, lost](std::stop_token stop) {
      const Status status = spec.role == Role::kWorker ? RunWorker(spec.config, source_, stop)
                                                       : RunParameterServer(spec.config, stop);
      FleetEvent event;
      event.kind = FleetEvent::Kind::kExited;
      event.name = spec.name;
      event.role = spec.role;
      const bool error = !status.ok() && status.code() != Code::kCancelled &&
                         status.code() != Code::kUnavailable && status.code() != Code::kAborted;
      event.exit_code = status.ok() ? 0 : error ? 1 : 143;
      event.exit_class = ClassifyExit(event.exit_code, false);
      event.message = status.ok() ? "" : status.message();
      if (!*lost) {
        watcher_(event);
      }
    });
    return Status();
  }
  Status Stop(const std::string& name, double) override {
    const std::lock_guard lock(mutex_);
    const auto found = threads_.find(name);
    if (found == threads_.end()) {
      return NotFound("no such thread");
    }
    found->second.request_stop();
    return Status();
  }
  // As when it is killed: it hands nothing over.
  void Lose(const std::string& name, Role role) {
    FleetEvent event;
    event.kind = FleetEvent::Kind::kExited;
    event.name = name;
    event.role = role;
    event.exit_code = 137;
    event.exit_class = ClassifyExit(event.exit_code, false);
    const std::lock_guard lock(mutex_);
    *lost_.at(name) = true;
    telling_.emplace_back([this, event] {
      watcher_(event);
      static_cast<void>(Stop(event.name, 0));
    });
  }
  void Watch(Watcher watcher) override { watcher_ = std::move(watcher); }
  // Announces that the process will be ended from outside at some time; until then it continues.
  void Leave(const std::string& name, Role role) {
    FleetEvent event;
    event.kind = FleetEvent::Kind::kLeaving;
    event.name = name;
    event.role = role;
    const std::lock_guard lock(mutex_);
    telling_.emplace_back([this, event] { watcher_(event); });
  }

  std::vector<std::string> launched() const {
    const std::lock_guard lock(mutex_);
    return launched_;
  }

 private:
  testing::MemorySource& source_;
  std::string held_;
  std::optional<Role> refused_;
  std::promise<void> go_;
  std::atomic<bool> held_too_long_ = false;
  mutable std::mutex mutex_;
  Watcher watcher_;
  std::vector<std::string> launched_;
  std::map<std::string, std::shared_ptr<std::atomic<bool>>> lost_;
  std::map<std::string, std::jthread> threads_;
  std::vector<std::jthread> telling_;
};

}  // namespace sluice::elastic
