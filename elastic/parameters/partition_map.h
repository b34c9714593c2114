#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"

namespace sluice::elastic {

// The master gives up a parameter server that is silent for this long; the server knows that, and
// then acknowledges nothing more.
inline constexpr double kServerSilenceSeconds = 5;
// One that has the only copy of some partition is waited for so long, unless its process is known
// to have ended: without it the job would fail.
inline constexpr double kLastCopySilenceSeconds = 60;

// Which server holds which partition. Only the master makes maps, each with a higher version than
// the last; a request is served only if it carries the server's own version.
struct PartitionMap {
  MapVersion version = kNoMapVersion;
  std::map<ServerId, std::string> servers;  // with their addresses
  std::vector<ServerId> primary;            // by partition
  std::vector<ServerId> backup;             // kNoServer: none

  std::vector<uint32_t> PrimariesOf(ServerId server) const;  // ascending
  // For a map from another process. InvalidArgument: a partition is on a server that is not in the
  // map, or has primary and backup on the same server.
  Status Check() const;
  bool operator==(const PartitionMap&) const = default;
};

// The pure part of the master's work with maps.

// Every server gets an equal number of partitions (give or take one). With `replicas` and two or
// more servers each partition has a backup: all partitions of one server have theirs on the next
// one, so that a push is forwarded once; if possible the next one on another of the `nodes`. Moves
// as few partitions as possible, preferably to holders of a copy. `servers` must be running;
// servers not in it get nothing.
PartitionMap Rebalanced(const PartitionMap& map, const std::map<ServerId, std::string>& servers,
                        bool replicas, const std::map<ServerId, std::string>& nodes = {});
// The first map of a job.
PartitionMap PlaceEvenly(const std::map<ServerId, std::string>& servers, uint32_t partitions,
                         bool replicas, const std::map<ServerId, std::string>& nodes = {});

// The map without `lost`: backups take over. `orphans` gets the partitions without any copy left;
// their primary is kNoServer.
PartitionMap WithoutServers(const PartitionMap& map, const std::set<ServerId>& lost,
                            std::vector<uint32_t>* orphans);

// What must be copied before `wanted` can replace `now`.
struct PartitionCopy {
  uint32_t partition = 0;
  ServerId from = kNoServer;  // its current primary
  ServerId to = kNoServer;
};
std::vector<PartitionCopy> CopiesFor(const PartitionMap& now, const PartitionMap& wanted);

}  // namespace sluice::elastic
