#include "elastic/parameters/partition_map.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/check.h"

namespace sluice::elastic {
namespace {

std::vector<uint32_t> PlacesOf(const std::vector<ServerId>& holders, ServerId server) {
  std::vector<uint32_t> partitions;
  for (uint32_t p = 0; p < holders.size(); ++p) {
    if (holders[p] == server) {
      partitions.push_back(p);
    }
  }
  return partitions;
}

// How many partitions each server is to have: those with the most now get the remainder.
std::map<ServerId, size_t> Quotas(const PartitionMap& map,
                                  const std::map<ServerId, std::string>& servers) {
  std::vector<std::pair<size_t, ServerId>> by_load;
  by_load.reserve(servers.size());
  for (const auto& [id, address] : servers) {
    by_load.emplace_back(map.PrimariesOf(id).size(), id);
  }
  std::stable_sort(by_load.begin(), by_load.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::map<ServerId, size_t> quotas;
  const size_t even = map.primary.size() / servers.size();
  size_t odd = map.primary.size() % servers.size();
  for (const auto& [load, id] : by_load) {
    quotas[id] = even + (odd > 0 ? 1 : 0);
    odd -= odd > 0 ? 1 : 0;
  }
  return quotas;
}

// The next server on another node, or else the next one.
ServerId BackupOf(ServerId primary, const std::map<ServerId, std::string>& servers,
                  const std::map<ServerId, std::string>& nodes) {
  const auto after = [&servers](ServerId server) {
    const auto next = servers.upper_bound(server);
    return next == servers.end() ? servers.begin()->first : next->first;
  };
  const auto node = [&nodes](ServerId server) {
    const auto found = nodes.find(server);
    return found == nodes.end() ? std::string() : found->second;
  };
  for (ServerId server = after(primary); server != primary; server = after(server)) {
    if (node(server) != node(primary)) {
      return server;
    }
  }
  return after(primary);
}

}  // namespace

std::vector<uint32_t> PartitionMap::PrimariesOf(ServerId server) const {
  return PlacesOf(primary, server);
}

Status PartitionMap::Check() const {
  if (primary.size() != backup.size()) {
    return InvalidArgument(
        fmt::format("a map of {} partitions and {} backups", primary.size(), backup.size()));
  }
  for (size_t p = 0; p < primary.size(); ++p) {
    const bool backed = backup[p] == kNoServer || servers.contains(backup[p]);
    if (!servers.contains(primary[p]) || !backed || primary[p] == backup[p]) {
      return InvalidArgument(
          fmt::format("a map with partition {} at servers {} and {}, of {} servers", p, primary[p],
                      backup[p], servers.size()));
    }
  }
  return Status();
}

PartitionMap Rebalanced(const PartitionMap& map, const std::map<ServerId, std::string>& servers,
                        bool replicas, const std::map<ServerId, std::string>& nodes) {
  SLUICE_CHECK(!servers.empty(), "partitions need a server");
  PartitionMap result = map;
  result.servers = servers;
  ++result.version;
  std::map<ServerId, size_t> room = Quotas(map, servers);
  std::vector<ServerId>& primary = result.primary;
  const auto take = [&](uint32_t p, ServerId server) {
    const auto found = room.find(server);
    if (found == room.end() || found->second == 0) {
      return false;
    }
    --found->second;
    primary[p] = server;
    return true;
  };
  std::vector<uint32_t> moving;
  for (uint32_t p = 0; p < primary.size(); ++p) {
    if (!take(p, map.primary[p])) {
      moving.push_back(p);
    }
  }
  std::erase_if(moving, [&](uint32_t p) { return take(p, map.backup[p]); });
  for (uint32_t p : moving) {
    const auto most = std::max_element(
        room.begin(), room.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    take(p, most->first);
  }
  result.backup.assign(primary.size(), kNoServer);
  if (replicas && servers.size() > 1) {
    for (uint32_t p = 0; p < primary.size(); ++p) {
      result.backup[p] = BackupOf(primary[p], servers, nodes);
    }
  }
  return result;
}

PartitionMap PlaceEvenly(const std::map<ServerId, std::string>& servers, uint32_t partitions,
                         bool replicas, const std::map<ServerId, std::string>& nodes) {
  PartitionMap nothing;
  nothing.primary.assign(partitions, kNoServer);
  nothing.backup.assign(partitions, kNoServer);
  return Rebalanced(nothing, servers, replicas, nodes);
}

PartitionMap WithoutServers(const PartitionMap& map, const std::set<ServerId>& lost,
                            std::vector<uint32_t>* orphans) {
  PartitionMap result = map;
  ++result.version;
  std::erase_if(result.servers, [&](const auto& server) { return lost.contains(server.first); });
  for (uint32_t p = 0; p < result.primary.size(); ++p) {
    if (lost.contains(result.backup[p])) {
      result.backup[p] = kNoServer;
    }
    if (lost.contains(result.primary[p])) {
      result.primary[p] = std::exchange(result.backup[p], kNoServer);
    }
    if (result.primary[p] == kNoServer) {
      orphans->push_back(p);
    }
  }
  return result;
}

std::vector<PartitionCopy> CopiesFor(const PartitionMap& now, const PartitionMap& wanted) {
  std::vector<PartitionCopy> copies;
  for (uint32_t p = 0; p < now.primary.size(); ++p) {
    for (ServerId to : {wanted.primary[p], wanted.backup[p]}) {
      if (to != kNoServer && to != now.primary[p] && to != now.backup[p]) {
        copies.push_back({p, now.primary[p], to});
      }
    }
  }
  return copies;
}

}  // namespace sluice::elastic
