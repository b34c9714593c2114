#include "elastic/master/parameter_fleet.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/guarded.h"
#include "base/log.h"

namespace sluice::elastic {
namespace {

// After a failure that may be temporary: the death of a server is reported a little later.
constexpr auto kRetryWait = std::chrono::milliseconds(20);
// How often silence and room are checked; everything else wakes the thread at once.
constexpr auto kTick = std::chrono::milliseconds(200);
constexpr auto kWaitForRoom = std::chrono::milliseconds(200);
// This many servers in a row that end before they have registered are not bad luck.
constexpr int kFailedStarts = 8;
// Versions of maps begin here in each term: above all that earlier masters may have tried.
constexpr int kVersionBitsOfATerm = 32;
// How long the end of an epoch, or of the job, waits for a server to answer or to be replaced: for
// longer than a silent one with the last copy is waited for. One that was only asleep is asked
// again.
constexpr auto kPatience = std::chrono::seconds(static_cast<int>(kLastCopySilenceSeconds) + 15);
constexpr auto kAskAgain = std::chrono::milliseconds(100);

}  // namespace

ParameterFleet::ParameterFleet(const Options& options, Hooks hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      control_(options.key, options.term, stop_.get_token(), [this] { return Interrupted(); }),
      wanted_(options.servers),
      next_(options.first_server),
      version_(uint64_t{options.term.index()} << kVersionBitsOfATerm) {
  if (!options.placement.has_value()) {
    return;
  }
  map_ = options.placement->map;
  next_ = options.placement->next;
  wanted_ = options.placement->wanted;
  // The previous master may have died while it installed another map, or moved partitions for one:
  // the map that was in use is installed once more.
  filling_ = map_.version > kNoMapVersion;
  for (ServerId id : options.running) {
    if (!options.placement->servers.contains(id)) {
      unknown_servers_.push_back(id);  // given up, and may not know it
      continue;
    }
    const auto known = map_.servers.find(id);
    // A server that is not in the map registers again within a second.
    servers_[id] = {known == map_.servers.end() ? "" : known->second, clock_.Now()};
  }
  for (const auto& [id, address] : map_.servers) {
    if (!servers_.contains(id)) {
      why_lost_[id] = fmt::format("parameter server {} was lost while the job had no master", id);
    }
  }
}

ParameterFleet::~ParameterFleet() {
  Stop();
}

void ParameterFleet::Start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { Work(stop); });
  judge_ = std::jthread([this](const std::stop_token& stop) { Judge(stop); });
}

void ParameterFleet::Stop() {
  {
    const MutexLock lock(mutex_);
    stop_.request_stop();
    thread_.request_stop();
    judge_.request_stop();
    ++changes_;
    changed_.notify_all();
  }
  for (std::jthread* thread : {&thread_, &judge_}) {
    if (thread->joinable()) {
      thread->join();
    }
  }
}

bool ParameterFleet::OnRegistered(ServerId server, const std::string& address,
                                  const std::string& node) {
  const MutexLock lock(mutex_);
  const auto found = servers_.find(server);
  if (found == servers_.end()) {
    return server >= next_;  // started before this master, which will ask for it soon
  }
  found->second.last_contact = clock_.Now();
  found->second.waited_for = false;
  found->second.node = node;
  if (found->second.address.empty()) {
    found->second.address = address;
    failed_starts_ = 0;
    ++changes_;
    changed_.notify_all();
  }
  return true;
}

void ParameterFleet::Forget(ServerId server, const std::string& why) {
  const auto found = servers_.find(server);
  if (found == servers_.end()) {
    return;
  }
  failed_starts_ += found->second.address.empty() ? 1 : 0;
  servers_.erase(found);
  ++losses_;
  why_lost_[server] = why;
  log::Info("parameter server {} was lost: {}", server, why);
  ++changes_;
  changed_.notify_all();
}

void ParameterFleet::OnLost(ServerId server, const std::string& why) {
  const MutexLock lock(mutex_);
  Forget(server, why);
}

bool ParameterFleet::OnLeaving(ServerId server, const std::string& why) {
  {
    const MutexLock lock(mutex_);
    const auto found = servers_.find(server);
    if (found == servers_.end() || stop_.stop_requested()) {
      return false;
    }
    if (found->second.leaving) {
      return true;
    }
    if (!HasOnlyCopies(server)) {
      Forget(server, why);
      return false;
    }
    found->second.leaving = true;
    ++changes_;
    changed_.notify_all();
  }
  hooks_.on_event("server_leaves", fmt::format("{}: it has the only copy of some partitions, which "
                                               "others get before it ends",
                                               server));
  return true;
}

void ParameterFleet::OnNotStarted(ServerId server, const Status& why) {
  const MutexLock lock(mutex_);
  if (servers_.erase(server) == 0) {
    return;
  }
  if (why.code() == Code::kResourceExhausted || why.code() == Code::kUnavailable) {
    start_after_ = clock_.Now() + kWaitForRoom;
  } else {
    not_started_ = why;
  }
  ++changes_;
  changed_.notify_all();
}

void ParameterFleet::Judge(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    static_cast<void>(Guarded("looking for silent servers", [this] { GiveUpSilent(); }));
    MutexLock lock(mutex_);
    changed_.wait_for(lock.native(), kTick);
  }
}

void ParameterFleet::GiveUpSilent() {
  std::set<ServerId> silent;
  std::vector<std::string> waiting;
  {
    const MutexLock lock(mutex_);
    const TimePoint now = clock_.Now();
    for (const auto& [id, server] : servers_) {
      // A server that is still starting is watched by the fleet of processes, not by the clock.
      if (!server.address.empty() &&
          SecondsBetween(server.last_contact, now) >= options_.silence_seconds) {
        silent.insert(id);
      }
    }
    for (ServerId id : WithLastCopies(silent)) {
      Server& server = servers_[id];
      if (SecondsBetween(server.last_contact, now) < options_.last_copy_silence_seconds) {
        silent.erase(id);
        if (!std::exchange(server.waited_for, true)) {
          waiting.push_back(fmt::format(
              "{}: no sign of life for {} seconds, and it has the only copy of some partitions: it "
              "is waited for, {} seconds in all",
              id, options_.silence_seconds, options_.last_copy_silence_seconds));
        }
      }
    }
    for (ServerId id : silent) {
      Forget(id, fmt::format("no sign of life for {:.0f} seconds",
                             SecondsBetween(servers_[id].last_contact, now)));
    }
  }
  for (const std::string& which : waiting) {
    hooks_.on_event("server_silent", which);
  }
  for (ServerId id : silent) {
    hooks_.stop(id);
  }
}

bool ParameterFleet::Interrupted() {
  const MutexLock lock(mutex_);
  return losses_ != losses_seen_;
}

void ParameterFleet::SetServers(uint32_t servers) {
  const MutexLock lock(mutex_);
  wanted_ = std::max<uint32_t>(1, servers);
  ++changes_;
  changed_.notify_all();
}

bool ParameterFleet::complete() const {
  const MutexLock lock(mutex_);
  return map_.version > kNoMapVersion && map_.servers.size() >= wanted_ &&
         std::all_of(map_.servers.begin(), map_.servers.end(),
                     [this](const auto& server) REQUIRES(mutex_) {
                       const auto found = servers_.find(server.first);
                       return found != servers_.end() && !found->second.leaving;
                     });
}

uint32_t ParameterFleet::wanted() const {
  const MutexLock lock(mutex_);
  return wanted_;
}

ServerId ParameterFleet::next_server() const {
  const MutexLock lock(mutex_);
  return next_;
}

PartitionMap ParameterFleet::map() const {
  const MutexLock lock(mutex_);
  return map_;
}

std::map<ServerId, std::string> ParameterFleet::Registered() const {
  std::map<ServerId, std::string> registered;
  for (const auto& [id, server] : servers_) {
    if (!server.address.empty() && !server.leaving) {
      registered.emplace(id, server.address);
    }
  }
  return registered;
}

size_t ParameterFleet::Staying() const {
  return static_cast<size_t>(std::count_if(servers_.begin(), servers_.end(),
                                           [](const auto& each) { return !each.second.leaving; }));
}

std::map<ServerId, std::string> ParameterFleet::Nodes() const {
  std::map<ServerId, std::string> nodes;
  for (const auto& [id, server] : servers_) {
    nodes.emplace(id, server.node);
  }
  return nodes;
}

void ParameterFleet::Work(const std::stop_token& stop) {
  for (ServerId id : unknown_servers_) {
    hooks_.stop(id);
  }
  while (!stop.stop_requested()) {
    const uint64_t seen = [this] {
      const MutexLock lock(mutex_);
      return changes_;
    }();
    for (bool more = true; more && !stop.stop_requested();) {
      const Result<bool> did = Guarded("keeping parameter servers", [this] { return Step(); });
      if (did.ok()) {
        more = *did;
        continue;
      }
      const Code code = did.status().code();
      if (over_ ||
          (code != Code::kUnavailable && code != Code::kCancelled && code != Code::kAborted)) {
        if (!stop.stop_requested()) {
          hooks_.fail(did.status());
        }
        const MutexLock lock(mutex_);
        failed_ = did.status();
        changed_.notify_all();
        return;
      }
      MutexLock lock(mutex_);
      changed_.wait_for(lock.native(), kRetryWait);
    }
    MutexLock lock(mutex_);
    if (changes_ == seen && !stop.stop_requested()) {
      changed_.wait_for(lock.native(), kTick);
    }
  }
}

Result<bool> ParameterFleet::Step() {
  std::set<ServerId> lost;
  PartitionMap now;
  {
    const MutexLock lock(mutex_);
    losses_seen_ = losses_;
    now = map_;
    for (const auto& [id, address] : map_.servers) {
      if (!servers_.contains(id)) {
        lost.insert(id);
      }
    }
  }
  if (!lost.empty()) {
    RETURN_IF_ERROR(TakeOver(lost));
    return true;
  }
  if (filling_) {
    // A move was given up: pushes must not wait for the servers that were to get copies.
    RETURN_IF_ERROR(Install(now, ParameterControl::Phase::kAdopt));
    return true;
  }
  ASSIGN_OR_RETURN(const bool started, StartMissing());
  if (started) {
    return true;
  }
  ASSIGN_OR_RETURN(const bool moved, Rebalance());
  return moved ? moved : CheckpointIfDue();
}

Status ParameterFleet::StartServers(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    ServerId id;
    {
      const MutexLock lock(mutex_);
      if (failed_starts_ > kFailedStarts) {
        return FailedPrecondition("parameter servers end before they have registered")
            .Detail(why_lost_.empty() ? "" : why_lost_.rbegin()->second);
      }
      id = next_++;
      servers_[id] = {};
    }
    Status status = Remember(map());
    if (status.ok()) {
      status = hooks_.start(id);
    }
    if (!status.ok()) {
      const MutexLock lock(mutex_);
      servers_.erase(id);
      return status;
    }
  }
  return Status();
}

Result<bool> ParameterFleet::StartMissing() {
  size_t missing = 0;
  {
    const MutexLock lock(mutex_);
    RETURN_IF_ERROR(not_started_);
    if (clock_.Now() < start_after_) {
      return false;
    }
    missing = wanted_ > Staying() ? wanted_ - Staying() : 0;
  }
  RETURN_IF_ERROR(StartServers(missing));
  return missing > 0;
}

Status ParameterFleet::AskAll(const std::function<Status(const PartitionMap&)>& ask) {
  MapVersion version = kNoMapVersion;
  auto until = std::chrono::steady_clock::now();
  for (;;) {
    const PartitionMap now = map();
    if (now.version > version) {
      version = now.version;
      until = std::chrono::steady_clock::now() + kPatience;
    }
    Status status = ask(now);
    if (status.code() != Code::kUnavailable && status.code() != Code::kNotFound) {
      return status;
    }
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(failed_);
    if (stop_.stop_requested() || std::chrono::steady_clock::now() >= until) {
      return Unavailable("the parameter servers do not come back").Detail(status.message());
    }
    if (map_.version == version) {
      changed_.wait_for(lock.native(), kAskAgain);
    }
  }
}

Result<std::string> ParameterFleet::Keep(const KeepOrder& order) {
  std::string digest;
  RETURN_IF_ERROR(AskAll([&](const PartitionMap& now) -> Status {
    ASSIGN_OR_RETURN(digest, control_.Keep(now, order));
    return Status();
  }));
  return digest;
}

Result<models::NetworkWeights> ParameterFleet::Collect(const models::Network& network,
                                                       const std::string& digest) {
  models::NetworkWeights collected;
  RETURN_IF_ERROR(AskAll([&](const PartitionMap& now) -> Status {
    ASSIGN_OR_RETURN(collected, control_.Collect(now, network, digest));
    return Status();
  }));
  return collected;
}

}  // namespace sluice::elastic
