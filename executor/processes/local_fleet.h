#pragma once

#include <deque>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/fleet.h"

namespace sluice::executor {

struct LocalProcess;

// A fleet of processes of our own binary on this machine. One thread starts and watches them all
// (pidfd and pipes, no signals); the processes die with it. Thread-safe.
class LocalFleet final : public elastic::Fleet {
 public:
  struct Options {
    std::string binary;  // empty: /proc/self/exe
  };
  static Result<std::unique_ptr<LocalFleet>> Make(Options options);
  ~LocalFleet() override;  // kills those that still run, and waits until they are gone

  Status Launch(const elastic::ProcessSpec& spec) override;
  Status Stop(const std::string& name, double grace_seconds) override;
  void Watch(Watcher watcher) override;

  // For tests that kill real processes.
  Result<int> ProcessId(const std::string& name) const;

 private:
  struct Order {
    elastic::ProcessSpec spec;
    std::promise<Status> answer;
  };
  explicit LocalFleet(Options options);

  void Loop();
  Result<bool> Turn();  // false: there is nothing left to do
  void Wake() const;
  void RunOrders() EXCLUDES(mutex_);
  void KillOverdue() EXCLUDES(mutex_);
  int PollTimeout() const EXCLUDES(mutex_);
  void Start(Order order) EXCLUDES(mutex_);
  void Reap(const std::string& name) EXCLUDES(mutex_);
  void LookAtGroups(const std::vector<LocalProcess*>& processes);
  bool KilledForMemory(const LocalProcess& process);
  void Emit(const elastic::FleetEvent& event);

  const Options options_;
  int wake_ = -1;  // eventfd

  mutable Mutex mutex_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  Watcher watcher_ GUARDED_BY(mutex_);
  std::deque<Order> orders_ GUARDED_BY(mutex_);
  // Entries are inserted and erased by the fleet's thread only.
  std::map<std::string, std::unique_ptr<LocalProcess>> processes_ GUARDED_BY(mutex_);

  // Of the fleet's thread. By control group: how many of its kills for memory were earlier than any
  // process of this fleet in it, or of one that has ended.
  std::map<std::string, int64_t> counted_kills_;

  std::jthread thread_;
};

}  // namespace sluice::executor
