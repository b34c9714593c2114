#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "elastic/master/parameter_fleet.h"

// How one map of the partitions follows another: when a server is lost, joins, or is to leave.
namespace sluice::elastic {

Status ParameterFleet::TakeOver(const std::set<ServerId>& lost) {
  std::vector<uint32_t> orphans;
  PartitionMap next = WithoutServers(map(), lost, &orphans);
  if (!orphans.empty()) {
    over_ = true;
    std::string how;
    const MutexLock lock(mutex_);
    for (ServerId id : lost) {
      how += fmt::format("{}{}", how.empty() ? "" : "; ", why_lost_[id]);
    }
    return Unavailable(fmt::format("{}, and with it the only copy of {} of {} partitions", how,
                                   orphans.size(), next.primary.size()))
        .Hint(options_.replicas
                  ? "run the statement again; the version in use is untouched"
                  : "engine.num_ps=2 with engine.replicas=1 keeps a second copy; the version in "
                    "use is untouched");
  }
  RETURN_IF_ERROR(Install(next, ParameterControl::Phase::kAdopt));
  for (ServerId id : lost) {
    hooks_.on_event("server_lost", fmt::format("{}: its partitions are served by others", id));
  }
  return Status();
}

// Those of the silent servers without which some partition would have no copy. With checkpoints
// none: the job returns to the newest one sooner than a server may come back.
std::set<ServerId> ParameterFleet::WithLastCopies(const std::set<ServerId>& silent) const {
  std::set<ServerId> needed;
  if (options_.checkpoints.has_value()) {
    return needed;
  }
  std::set<ServerId> gone = silent;
  for (const auto& [id, address] : map_.servers) {
    if (!servers_.contains(id)) {
      gone.insert(id);
    }
  }
  std::vector<uint32_t> orphans;
  WithoutServers(map_, gone, &orphans);
  for (uint32_t partition : orphans) {
    for (ServerId holder : {map_.primary[partition], map_.backup[partition]}) {
      if (silent.contains(holder)) {
        needed.insert(holder);
      }
    }
  }
  return needed;
}

bool ParameterFleet::HasOnlyCopies(ServerId server) const {
  std::set<ServerId> gone = {server};
  for (const auto& [id, address] : map_.servers) {
    if (!servers_.contains(id)) {
      gone.insert(id);
    }
  }
  std::vector<uint32_t> orphans;
  WithoutServers(map_, gone, &orphans);
  return !orphans.empty();
}

Status ParameterFleet::Remember(const PartitionMap& map) {
  Placement placement;
  {
    const MutexLock lock(mutex_);
    placement.map = map;
    for (const auto& [id, server] : servers_) {
      placement.servers.insert(id);
    }
    placement.next = next_;
    placement.wanted = wanted_;
  }
  return hooks_.remember ? hooks_.remember(placement) : Status();
}

// Of the servers that are still starting, those that are not wanted any more, the last one first.
std::vector<ServerId> ParameterFleet::TakeSuperfluous() {
  std::vector<ServerId> taken;
  const size_t registered = Registered().size();
  const size_t starting = wanted_ > registered ? wanted_ - registered : 0;
  while (Staying() > registered + starting) {
    const auto last = std::find_if(servers_.rbegin(), servers_.rend(), [](const auto& server) {
      return server.second.address.empty();
    });
    taken.push_back(last->first);
    servers_.erase(std::next(last).base());
  }
  return taken;
}

// Makes the first map when all wanted servers are there, and a better one than the current when
// they are or one of them is not in it yet: one that finds no room holds up no other. Those that
// stay take over what a leaving one has as soon as there is one of them.
Result<bool> ParameterFleet::Rebalance() {
  std::map<ServerId, std::string> servers, nodes;
  std::vector<ServerId> spare, starting;
  PartitionMap now;
  bool urgent = false;
  {
    const MutexLock lock(mutex_);
    now = map_;
    servers = Registered();
    nodes = Nodes();
    while (servers.size() > wanted_) {
      spare.push_back(servers.rbegin()->first);
      servers.erase(std::prev(servers.end()));
    }
    for (const auto& [id, server] : servers_) {
      if (server.leaving) {
        spare.push_back(id);
        urgent = urgent || (now.servers.contains(id) && !servers.empty());
      }
    }
    starting = TakeSuperfluous();
  }
  for (ServerId id : starting) {
    hooks_.stop(id);
  }
  const bool has_new = std::any_of(servers.begin(), servers.end(), [&now](const auto& server) {
    return !now.servers.contains(server.first);
  });
  if (servers.size() < wanted() && !urgent && (now.version == kNoMapVersion || !has_new)) {
    return false;  // they are starting
  }
  if (now.version == kNoMapVersion) {
    RETURN_IF_ERROR(Install(PlaceEvenly(servers, options_.partitions, options_.replicas, nodes),
                            ParameterControl::Phase::kCreate));
    return true;
  }
  PartitionMap next = Rebalanced(now, servers, options_.replicas, nodes);
  next.version = now.version;
  if (next != now) {
    ++next.version;
    ASSIGN_OR_RETURN(const bool moved, Move(now, next));
    if (!moved) {
      return true;  // the more urgent first
    }
  }
  for (ServerId id : spare) {
    {
      const MutexLock lock(mutex_);
      servers_.erase(id);
    }
    hooks_.stop(id);
  }
  return next != now;
}

Result<bool> ParameterFleet::Move(const PartitionMap& now, const PartitionMap& next) {
  const std::vector<PartitionCopy> copies = CopiesFor(now, next);
  for (const PartitionCopy& copy : copies) {
    {
      const MutexLock lock(mutex_);
      for (const auto& [id, address] : now.servers) {
        if (!servers_.contains(id)) {
          return false;
        }
      }
    }
    filling_ = true;
    RETURN_IF_ERROR(control_.Fill(now.servers.at(copy.from), copy.partition, copy.to,
                                  next.servers.at(copy.to)));
  }
  RETURN_IF_ERROR(Install(next, ParameterControl::Phase::kAdopt));
  hooks_.on_event("partitions_moved",
                  fmt::format("{} copies, {} servers", copies.size(), next.servers.size()));
  return true;
}

Status ParameterFleet::Install(const PartitionMap& wanted, ParameterControl::Phase phase,
                               const std::function<Status()>& frozen) {
  PartitionMap map = wanted;
  // A version that some servers may have seen in a failed attempt is not used for another map.
  map.version = std::max(map.version, version_.Next());
  version_ = map.version;
  std::map<ServerId, std::string> all = map.servers;
  {
    const MutexLock lock(mutex_);
    for (const auto& [id, address] : map_.servers) {
      if (servers_.contains(id)) {
        all.emplace(id, address);  // those that are to leave: they stop serving
      }
    }
  }
  for (const auto& [id, address] : all) {
    RETURN_IF_ERROR(control_.Install(address, map, ParameterControl::Phase::kFreeze));
  }
  if (frozen) {
    RETURN_IF_ERROR(frozen());
  }
  const bool restores = phase == ParameterControl::Phase::kCreate && options_.restore.has_value();
  for (const auto& [id, address] : map.servers) {
    RETURN_IF_ERROR(control_.Install(address, map, phase, restores ? &*options_.restore : nullptr));
  }
  // From here on it is in force: servers may drop what it does not need.
  RETURN_IF_ERROR(Remember(map));
  {
    const MutexLock lock(mutex_);
    map_ = map;
    changed_.notify_all();
  }
  filling_ = false;
  hooks_.publish(map);
  for (const auto& [id, address] : map.servers) {
    const Status released = control_.Install(address, map, ParameterControl::Phase::kRelease);
    if (!released.ok()) {
      log::Debug("parameter server {} keeps what it does not need: {}", id, released.message());
    }
  }
  return Status();
}

}  // namespace sluice::elastic
