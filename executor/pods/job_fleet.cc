#include "executor/pods/job_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "elastic/fleet/share_reason.h"
#include "executor/jobs/job_record.h"
#include "executor/pods/job_status.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/shared_config.h"

namespace sluice::executor {
namespace {

using elastic::FleetEvent;
using elastic::Role;

// Interval for reporting pods that wait for long; everything else wakes the thread at once.
constexpr auto kPlacesLook = std::chrono::milliseconds(250);

bool HasWorkers(const k8s::PodFleet& pods) {
  const auto adopted = pods.adopted();
  return std::any_of(adopted.begin(), adopted.end(),
                     [](const auto& pod) { return pod.identity.role == Role::kWorker; });
}

// The last line of its output.
std::string DescribeEnd(const FleetEvent& event) {
  std::string words = event.message.substr(0, event.message.find_last_not_of(" \n") + 1);
  words = words.substr(words.find_last_of('\n') + 1);
  return fmt::format("exit code {}{}{}", event.exit_code, words.empty() ? "" : ": ", words);
}

// By a user or a drain; nothing has happened that somebody had not asked for.
bool WasDeleted(const FleetEvent& event) {
  return event.exit_class == elastic::ExitClass::kPreempted &&
         (event.message.starts_with(k8s::kPodDeleted) ||
          event.message.starts_with("EvictionByEvictionAPI"));
}

// A label: `stopped` by us, or ended on its own.
const char* DescribeExit(const FleetEvent& event, bool stopped) {
  switch (event.exit_class) {
    case elastic::ExitClass::kOk:
      return "finished";
    case elastic::ExitClass::kPreempted:
      return stopped ? "stopped" : WasDeleted(event) ? "deleted" : "preempted";
    case elastic::ExitClass::kOutOfMemory:
      return "out_of_memory";
    case elastic::ExitClass::kConfiguration:
      return "cannot_start";
    default:
      return "failed";
  }
}

// For a pod that ended although the job did not stop it.
std::string ReasonOf(const FleetEvent& event) {
  const std::string who = event.role == Role::kMaster   ? "Master"
                          : event.role == Role::kWorker ? "Worker"
                                                        : "Server";
  switch (event.exit_class) {
    case elastic::ExitClass::kOutOfMemory:
      return who + "OutOfMemory";
    case elastic::ExitClass::kConfiguration:
      return who + "CannotStart";
    case elastic::ExitClass::kPreempted:
      return who + (WasDeleted(event) ? "Deleted" : "Preempted");
    default:
      return who + "Failed";
  }
}

FleetEvent EndOf(const std::string& name, Role role, int exit_code, elastic::ExitClass exit_class,
                 std::string why) {
  FleetEvent event;
  event.kind = FleetEvent::Kind::kExited;
  event.name = name;
  event.role = role;
  event.exit_code = exit_code;
  event.exit_class = exit_class;
  event.message = std::move(why);
  return event;
}

}  // namespace

// If there are workers, the servers were made before them.
JobFleet::JobFleet(std::unique_ptr<k8s::PodFleet> pods, JobRecord& job, JobStatus& status,
                   Asked asked)
    : job_(job),
      status_(status),
      asked_(asked),
      places_(asked.servers, asked.workers, HasWorkers(*pods)),
      wanted_(asked.workers),
      pods_(std::move(pods)) {
  {
    const MutexLock lock(mutex_);
    for (const k8s::PodFleet::Adopted& pod : pods_->adopted()) {
      if (pod.identity.role != Role::kMaster) {
        living_.emplace(pod.name, pod.identity.role);
        nodes_[pod.name] = pods_->NodeOf(pod.name);
        places_.OnMade(pod.name, pod.identity.role, !nodes_[pod.name].empty());
      }
    }
    Count();
  }
  pods_->Watch([this](const FleetEvent& event) { OnEvent(event); });
  thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
}

Status JobFleet::Launch(const elastic::ProcessSpec& wanted) {
  elastic::ProcessSpec spec = wanted;
  ASSIGN_OR_RETURN(spec.config, SharedConfig(wanted));
  bool is_there = false;  // created by somebody else
  {
    const MutexLock lock(mutex_);
    is_there = living_.contains(spec.name);
    living_.emplace(spec.name, spec.role);
    if (!is_there && spec.role == Role::kWorker && !places_.MayMakeWorkers()) {
      held_[spec.name] = spec;
      Count();
      return OkStatus();
    }
    if (!is_there) {  // before it is created: its first events may come at once
      places_.OnMade(spec.name, spec.role, false);
    }
  }
  Status launched = pods_->Launch(spec);
  const MutexLock lock(mutex_);
  if (!launched.ok() && !is_there) {
    living_.erase(spec.name);
    places_.OnGone(spec.name);
  }
  PlaceIfKnown(spec.name);
  Count();
  Changed();
  return launched;
}

// One that somebody else has created may have had its node before it was launched here.
void JobFleet::PlaceIfKnown(const std::string& name) {
  if (!pods_->NodeOf(name).empty()) {
    places_.OnPlaced(name);
  }
}

Status JobFleet::Stop(const std::string& name, double grace_seconds) {
  {
    const MutexLock lock(mutex_);
    const bool held = held_.erase(name) > 0;
    if (held && !pods_->Stop(name, grace_seconds).ok()) {  // nobody else has created it either
      constexpr int kTerminated = 143;
      unmade_.push_back(EndOf(name, Role::kWorker, kTerminated, elastic::ExitClass::kPreempted,
                              "it had no place yet"));
      Changed();
      return OkStatus();
    }
    stopped_.insert(name);
    if (held) {
      return OkStatus();
    }
  }
  return pods_->Stop(name, grace_seconds);
}

void JobFleet::Watch(Watcher watcher) {
  std::vector<FleetEvent> unheard;
  {
    const MutexLock lock(mutex_);
    watcher_ = watcher;
    unheard.swap(unheard_);
    Changed();
  }
  for (const FleetEvent& event : unheard) {
    watcher(event);
  }
}

void JobFleet::Want(uint32_t workers, std::vector<std::string> give_up,
                    std::vector<std::string> nodes, const std::string& why) {
  pods_->PreferNodes(std::move(nodes));
  const MutexLock lock(mutex_);
  if (workers != std::exchange(wanted_, workers)) {
    job_.Event("workers_granted",
               fmt::format("the job may have {}{}{}", elastic::CountWorkers(workers),
                           why.empty() ? "" : ": ", why));
  }
  places_.Want(workers);
  give_up_ = std::move(give_up);
  Changed();
}

bool JobFleet::EndAdopted(const std::string& except_run, double seconds,
                          const std::stop_token& stop) {
  std::vector<std::string> ending;
  {
    const MutexLock lock(mutex_);
    for (const auto& [name, role] : living_) {
      if (except_run.empty() || !IsOfRun(name, except_run)) {
        ending.push_back(name);
      }
    }
  }
  for (const std::string& name : ending) {
    const Status asked = pods_->Stop(name, 1);
    if (!asked.ok()) {
      log::Debug("{} need not be stopped: {}", name, asked.message());
    }
  }
  MutexLock lock(mutex_);
  const auto lives = [this](const std::string& name)
                         REQUIRES(mutex_) { return living_.contains(name); };
  changed_.wait_for(lock.native(), stop, std::chrono::duration<double>(seconds),
                    [&] { return std::none_of(ending.begin(), ending.end(), lives); });
  // Of a node that does not answer nobody can say whether they have ended.
  for (const std::string& name : ending) {
    living_.erase(name);
    places_.OnGone(name);
  }
  Count();
  return !stop.stop_requested();
}

// Records where each pod runs and how it ends, for SHOW JOB; the unusual ends also go to
// Kubernetes.
void JobFleet::ReportEvent(const FleetEvent& event) {
  using Kind = FleetEvent::Kind;
  std::string where = event.name;
  bool stopped = false;
  {
    const std::string node = event.kind == Kind::kStarted ? pods_->NodeOf(event.name) : "";
    const MutexLock lock(mutex_);
    if (event.kind == Kind::kStarted) {
      nodes_[event.name] = node;
    }
    const auto known = nodes_.find(event.name);
    if (known != nodes_.end()) {
      where += " on " + known->second;
    }
    if (event.kind == Kind::kExited) {
      stopped = stopped_.erase(event.name) > 0;
      nodes_.erase(event.name);
    }
  }
  if (event.kind == Kind::kStarted && event.role == Role::kMaster) {
    return;  // it reports this itself
  }
  if (event.kind == Kind::kStarted) {
    job_.Event("pod_started", where);
    status_.OnStarted(event.role);
    status_.Event(false, "PodStarted", where);
  } else if (event.kind == Kind::kExited) {
    const std::string how = fmt::format("{}: {}", where, DescribeEnd(event));
    job_.Event("pod_ended", how);
    status_.OnEnded(event.role, DescribeExit(event, stopped));
    if (!stopped && event.exit_class != elastic::ExitClass::kOk) {
      status_.Event(!WasDeleted(event), ReasonOf(event), how);
    }
  } else if (event.kind == Kind::kLeaving) {
    status_.Event(false, "PodLeaves", where);
  } else if (event.kind == Kind::kWaiting && event.message != k8s::kWaitsForScheduler &&
             event.message != k8s::kWaitsForNode) {
    const bool quota = event.message.find("exceeded quota") != std::string::npos;
    status_.Event(true, quota ? "QuotaExceeded" : "PodWaits",
                  fmt::format("{}: {}", where, event.message));
  }
}

void JobFleet::OnEvent(const FleetEvent& event) {
  using Kind = FleetEvent::Kind;
  ReportEvent(event);
  if (event.role == Role::kMaster) {
    return;  // its own keeper looks after that pod
  }
  Watcher watcher;
  {
    const MutexLock lock(mutex_);
    const bool lives = event.kind == Kind::kStarted || event.kind == Kind::kWaiting;
    if (lives && living_.emplace(event.name, event.role).second) {
      places_.OnMade(event.name, event.role, false);  // by the gateway, after this fleet began
      Count();
    }
    if (event.kind == Kind::kExited) {
      living_.erase(event.name);
      waits_for_.erase(event.name);
      places_.OnGone(event.name);
      Count();
    } else if (event.kind == Kind::kLeaving) {
      places_.OnGone(event.name);
    } else if (event.kind == Kind::kStarted || (event.kind == Kind::kWaiting && event.placed)) {
      places_.OnPlaced(event.name);
    } else if (event.kind == Kind::kWaiting) {
      places_.OnWaits(event.name, event.message, event.message != k8s::kWaitsForScheduler,
                      clock_.Now());
    }
    if (event.kind == Kind::kWaiting && event.message != k8s::kWaitsForScheduler &&
        event.message != k8s::kWaitsForNode && waits_for_[event.name] != event.message) {
      waits_for_[event.name] = event.message;
      job_.Event("pod_waits", fmt::format("{}: {}", event.name, event.message));
    }
    Changed();
    watcher = watcher_;
    if (!watcher) {
      unheard_.push_back(event);
    }
  }
  if (watcher) {
    watcher(event);
  }
}

void JobFleet::Changed() {
  ++changes_;
  changed_.notify_all();
}

void JobFleet::Run(const std::stop_token& stop) {
  uint64_t seen = 0;
  while (!stop.stop_requested()) {
    {
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), stop, kPlacesLook,
                        [this, seen]() REQUIRES(mutex_) { return changes_ != seen; });
      seen = changes_;
    }
    if (!stop.stop_requested()) {
      Proceed();
    }
  }
}

void JobFleet::Proceed() {
  std::vector<FleetEvent> events;
  std::map<std::string, elastic::ProcessSpec> due;
  std::vector<std::string> news;
  {
    const MutexLock lock(mutex_);
    const TimePoint now = clock_.Now();
    events.swap(unmade_);
    if (places_.MayMakeWorkers()) {
      due.swap(held_);
    }
    for (const auto& [name, spec] : due) {
      places_.OnMade(name, spec.role, false);
      const Status launched = pods_->Launch(spec);  // locked: no Stop comes in between
      if (!launched.ok()) {
        constexpr int kCannotStart = 126;
        events.push_back(EndOf(name, spec.role, kCannotStart, elastic::ExitClass::kConfiguration,
                               launched.message()));
      }
      PlaceIfKnown(name);
    }
    // A grant that nobody hears yet would be lost.
    if (const auto grant = watcher_ ? places_.Grant(now) : std::nullopt) {
      FleetEvent granted;
      granted.kind = FleetEvent::Kind::kGranted;
      granted.workers = *grant;
      granted.give_up = give_up_;
      if (places_.crowded()) {
        const std::vector<std::string> waiting = places_.WaitingWorkers();
        granted.give_up.insert(granted.give_up.end(), waiting.begin(), waiting.end());
      }
      events.push_back(std::move(granted));
      if (places_.crowded() != std::exchange(crowded_, places_.crowded())) {
        job_.Event(crowded_ ? "workers_withdrawn" : "workers_have_room",
                   crowded_ ? fmt::format("no node has room for more than {}; {} wait for it",
                                          elastic::CountWorkers(places_.Placed(Role::kWorker)),
                                          JobPlaces::kMaxWaiting)
                            : fmt::format("there is room for {}", elastic::CountWorkers(*grant)));
      } else if (!crowded_ && (*grant < wanted_ || yielded_)) {
        yielded_ = *grant < wanted_;
        job_.Event(yielded_ ? "workers_give_way" : "servers_placed",
                   fmt::format("the job goes on with {}", elastic::CountWorkers(*grant)));
      }
      Count();
    }
    status_.OnWatchRestarts(pods_->watch_restarts());
    news = places_.News(now);
    const uint32_t workers = places_.Placed(Role::kWorker);
    const auto all =
        static_cast<uint32_t>(std::count_if(living_.begin(), living_.end(), [](const auto& pod) {
          return pod.second == Role::kWorker;
        }));
    status_.OnPods({workers, places_.Placed(Role::kParameterServer), all - std::min(all, workers),
                    places_.WaitsFor(), wanted_});
  }
  for (const FleetEvent& event : events) {
    OnEvent(event);
  }
  for (const std::string& text : news) {
    log::Info("job={} {}", job_.id(), text);
    job_.Notify(text);
  }
}

void JobFleet::Count() {
  const int64_t workers = std::count_if(
      living_.begin(), living_.end(), [](const auto& pod) { return pod.second == Role::kWorker; });
  catalog::JobWorkers row;
  row.now = workers;
  row.wanted = wanted_;
  row.min = asked_.min;
  row.max = asked_.max;
  if (!(row == counted_)) {
    counted_ = row;
    job_.Workers(row);
  }
}

}  // namespace sluice::executor
