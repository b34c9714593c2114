#pragma once

#include <fmt/core.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/mutex.h"
#include "elastic/fleet/fleet.h"
#include "elastic/master/master_host.h"
#include "elastic/master/parameter_fleet.h"

namespace sluice::elastic {

// When the job is over, remaining processes get this long before they are killed: a cancelled
// statement has to end within a second.
inline constexpr double kStopGraceSeconds = 0.8;
// Killed processes end at once; a fleet that does not report it is not waited for any longer.
inline constexpr auto kStopWait = std::chrono::seconds(10);

inline std::string DescribeEnd(const FleetEvent& event) {
  std::string text = event.message;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) {
    text.pop_back();
  }
  const std::string code = fmt::format("exit code {}", event.exit_code);
  return text.empty() ? code : fmt::format("{}: {}", code, text);
}

// The processes that a job has started, according to the fleet's events. Shared with the watcher,
// which may outlive the job. Thread-safe.
class JobProcesses {
 public:
  JobProcesses(MasterHost* host, ParameterFleet* parameters)
      : host_(host), parameters_(parameters) {}

  void Add(const std::string& name, ServerId server = kNoServer) {
    const MutexLock lock(mutex_);
    running_[name] = {server, false};
  }
  void Remove(const std::string& name) {
    const MutexLock lock(mutex_);
    running_.erase(name);
    gone_.notify_all();
  }
  // Of the parameter server with this number that runs or is being started; "": none.
  std::string NameOf(ServerId server) {
    const MutexLock lock(mutex_);
    for (const auto& [name, process] : running_) {
      if (process.server == server) {
        return name;
      }
    }
    return "";
  }
  void OnEvent(const FleetEvent& event) {
    const MutexLock lock(mutex_);
    if (event.kind == FleetEvent::Kind::kGranted && host_ != nullptr) {
      host_->With(
          [&](Master& master, TimePoint now) { master.Scale(event.workers, now, event.give_up); });
    }
    if (event.kind == FleetEvent::Kind::kWaiting) {
      log::Info("process waits name={} for={}", event.name, event.message);
    }
    const bool leaving = event.kind == FleetEvent::Kind::kLeaving;
    if (!leaving && event.kind != FleetEvent::Kind::kExited) {
      return;
    }
    const auto found = running_.find(event.name);
    if (host_ != nullptr && found != running_.end() && !found->second.handed_on) {
      // A leaving worker has no work left when it ends.
      found->second.handed_on = !leaving || event.role != Role::kParameterServer;
      const std::string how = leaving ? "it is leaving" : DescribeEnd(event);
      const bool no_start = !leaving && event.exit_class == ExitClass::kConfiguration;
      if (event.role == Role::kParameterServer && no_start) {
        parameters_->OnNotStarted(
            found->second.server,
            FailedPrecondition(
                fmt::format("parameter server {} cannot be started: {}", event.name, how)));
      } else if (event.role == Role::kParameterServer) {
        const std::string lost = fmt::format("parameter server {} was lost ({})", event.name, how);
        if (leaving) {
          static_cast<void>(parameters_->OnLeaving(found->second.server, lost));
        } else {
          parameters_->OnLost(found->second.server, lost);
        }
      } else {
        host_->With([&](Master& master, TimePoint now) {
          master.OnExit(event.name, leaving ? ExitClass::kPreempted : event.exit_class, how, now);
        });
      }
    }
    if (leaving) {
      return;
    }
    running_.erase(event.name);
    gone_.notify_all();
  }
  // Stops the remaining processes and waits until they have ended. No event reaches the host
  // afterwards.
  void StopAll(Fleet& fleet) {
    std::map<std::string, double> grace_seconds;
    {
      const MutexLock lock(mutex_);
      host_ = nullptr;
      for (const auto& [name, process] : running_) {
        // A server has nothing that is still needed.
        grace_seconds[name] = process.server == kNoServer ? kStopGraceSeconds : 0;
      }
    }
    for (const auto& [name, grace] : grace_seconds) {
      const Status status = fleet.Stop(name, grace);
      if (!status.ok()) {
        log::Debug("stopping {}: {}", name, status.message());
        Remove(name);
      }
    }
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + kStopWait;
    while (!running_.empty()) {
      if (gone_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        log::Error("{} processes of the job do not end", running_.size());
        return;
      }
    }
  }

 private:
  struct Process {
    ServerId server = kNoServer;  // kNoServer: a worker
    bool handed_on = false;       // its work, or its place, has been given to another
  };

  Mutex mutex_;
  std::condition_variable gone_;
  MasterHost* host_ GUARDED_BY(mutex_);  // null: events are no longer wanted
  ParameterFleet* parameters_ GUARDED_BY(mutex_);
  std::map<std::string, Process> running_ GUARDED_BY(mutex_);
};

}  // namespace sluice::elastic
