#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::elastic {

// A parameter server that says nothing for so long is given up by the master; it knows that, and
// acknowledges nothing that comes later.
inline constexpr double kServerSilenceSeconds = 5;

// One number for each parameter server process that is started in a job; never used again.
using ServerId = uint32_t;
inline constexpr ServerId kNoServer = 0xFFFFFFFF;

// Which server holds which partition. The master alone makes maps, each with a higher version than
// the last; a request is served only where it carries the server's own version.
struct PartitionMap {
  uint64_t version = 0;
  std::map<ServerId, std::string> servers;  // with their addresses
  std::vector<ServerId> primary;            // by partition
  std::vector<ServerId> backup;             // kNoServer: none

  std::vector<uint32_t> PrimariesOf(ServerId server) const;  // ascending
  std::vector<uint32_t> BackupsOf(ServerId server) const;
  // Of one that came from elsewhere. InvalidArgument: a partition is with a server that the map
  // does not have, or has its backup where it is itself.
  Status Check() const;
  bool operator==(const PartitionMap&) const = default;
};

// The pure part of what the master does with maps.

// Every server gets an equal number of partitions (give or take one). With `replicas` and two or
// more servers each partition has a backup: all partitions of one server have theirs on the next,
// so that a push is forwarded once: the next one that is on another of the `nodes`, where there is
// one. Moves as few partitions as that takes, to holders of a copy
// first. `servers` must be there; those that are not in it get nothing.
PartitionMap Rebalanced(const PartitionMap& map, const std::map<ServerId, std::string>& servers,
                        bool replicas, const std::map<ServerId, std::string>& nodes = {});
// The first map of a job.
PartitionMap PlaceEvenly(const std::map<ServerId, std::string>& servers, uint32_t partitions,
                         bool replicas, const std::map<ServerId, std::string>& nodes = {});

// What is left without `lost`: backups take over. `orphans` gets the partitions of which no copy
// is left; their primary is kNoServer.
PartitionMap WithoutServers(const PartitionMap& map, const std::set<ServerId>& lost,
                            std::vector<uint32_t>* orphans);

// What must be copied before `wanted` can replace `now`.
struct PartitionCopy {
  uint32_t partition = 0;
  ServerId from = kNoServer;  // its primary now
  ServerId to = kNoServer;
};
std::vector<PartitionCopy> CopiesFor(const PartitionMap& now, const PartitionMap& wanted);

}  // namespace sluice::elastic
