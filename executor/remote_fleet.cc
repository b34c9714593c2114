#include "executor/remote_fleet.h"

#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "executor/master_wire_internal.h"
#include "executor/processes/child_process.h"

namespace sluice::executor {

RemoteFleet::RemoteFleet(const std::vector<elastic::LivingProcess>& living) {
  for (const elastic::LivingProcess& process : living) {
    running_[process.name] = process.role;
  }
  receiver_ = std::jthread([this] {
    // A message that cannot be taken is as good as no gateway: logged there.
    [[maybe_unused]] const Status received = Guarded("hearing the gateway", [this] {
      ReceiveFromLauncher([this](const std::string& bytes) { Receive(bytes); });
    });
    OnGatewayGone();
  });
}

RemoteFleet::~RemoteFleet() {
  StopReceiving();
}

Status RemoteFleet::Launch(const elastic::ProcessSpec& spec) {
  MasterMessage message;
  *message.mutable_launch() = ToMessage(spec);
  std::future<Status> answer;
  {
    const MutexLock lock(mutex_);
    if (gone_) {
      return Unavailable("the gateway that owns the fleet is gone");
    }
    message.mutable_launch()->set_id(next_launch_);
    answer = launches_[next_launch_++].get_future();
    running_[spec.name] = spec.role;  // its first event may come before the answer
  }
  Status status = SendToLauncher(message.SerializeAsString());
  if (status.ok()) {
    status = answer.get();
  }
  if (!status.ok()) {
    const MutexLock lock(mutex_);
    launches_.erase(message.launch().id());
    running_.erase(spec.name);
  }
  return status;
}

Status RemoteFleet::Stop(const std::string& name, double grace_seconds) {
  {
    const MutexLock lock(mutex_);
    if (!running_.contains(name)) {
      return NotFound("no process '" + name + "' in the fleet");
    }
  }
  MasterMessage message;
  message.mutable_stop()->set_name(name);
  message.mutable_stop()->set_grace_seconds(grace_seconds);
  return SendToLauncher(message.SerializeAsString());
}

void RemoteFleet::Watch(Watcher watcher) {
  for (;;) {
    std::vector<elastic::FleetEvent> missed;
    {
      const MutexLock lock(mutex_);
      missed.swap(unwatched_);
      if (missed.empty()) {
        watcher_ = std::move(watcher);
        return;
      }
    }
    for (const elastic::FleetEvent& event : missed) {
      watcher(event);
    }
  }
}

void RemoteFleet::Receive(const std::string& bytes) {
  GatewayMessage message;
  if (!message.ParseFromString(bytes)) {
    log::Error("a message of the gateway cannot be read");
    return;
  }
  if (message.has_launched()) {
    const MutexLock lock(mutex_);
    const auto found = launches_.find(message.launched().id());
    if (found != launches_.end()) {
      found->second.set_value(FromMessage(message.launched().error()));
      launches_.erase(found);
    }
  } else if (message.has_event()) {
    Emit(FromMessage(message.event()));
  }
}

void RemoteFleet::Emit(const elastic::FleetEvent& event) {
  Watcher watcher;
  {
    const MutexLock lock(mutex_);
    if (event.kind == elastic::FleetEvent::Kind::kExited) {
      running_.erase(event.name);
    }
    watcher = watcher_;
    if (!watcher) {
      unwatched_.push_back(event);
    }
  }
  if (watcher) {
    watcher(event);
  }
}

// Its processes die with it, and nobody else will say so.
void RemoteFleet::OnGatewayGone() {
  std::map<std::string, elastic::Role> lost;
  {
    const MutexLock lock(mutex_);
    gone_ = true;
    for (auto& [id, answer] : launches_) {
      answer.set_value(Unavailable("the gateway that owns the fleet is gone"));
    }
    launches_.clear();
    lost = running_;
  }
  for (const auto& [name, role] : lost) {
    elastic::FleetEvent event;
    event.kind = elastic::FleetEvent::Kind::kExited;
    event.name = name;
    event.role = role;
    event.exit_class = elastic::ExitClass::kPreempted;
    event.message = "the gateway is gone";
    Emit(event);
  }
}

}  // namespace sluice::executor
