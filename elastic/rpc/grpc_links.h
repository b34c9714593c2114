#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/transport/job_key.h"

namespace sluice::elastic {

// A worker's links to processes of their own. Every call has a deadline; a call that does not get
// through is repeated with the same identity, so that it counts once however often it arrives;
// `stop` ends the repeating.
class RemoteMaster : public MasterLink, public WorldLink {
 public:
  static std::unique_ptr<RemoteMaster> Connect(const std::string& address, const JobKey& key,
                                               Incarnation worker, std::stop_token stop);
  // The map of the partitions. The master waits a little for one that is newer than `newer_than`;
  // version 0: the servers are not there yet, ask again.
  virtual Result<PartitionMap> Map(uint64_t newer_than) = 0;
  // The weights to continue from, of so many bytes. NotFound: they are with those who need them.
  virtual Result<models::NetworkWeights> Base(uint64_t bytes) = 0;
  // What the epoch adds up (models::LinearPass). NotFound: another epoch is under way.
  virtual Result<std::string> Pass(Epoch epoch) = 0;
  // What all workers (or parameter servers) of the job are told, a part of a ProcessConfig.
  virtual Result<std::string> Configure(bool server) = 0;
  // What a heartbeat tells beside that the process lives.
  struct Pulse {
    std::string waits_for;                      // "": nothing new
    std::string snapshot, validation_snapshot;  // that this process keeps alive; "": none
  };
  // Thread-safe. True: the job is over.
  virtual Result<bool> Heartbeat(const Pulse& pulse) = 0;
  // Of a parameter server: it is there, and still is. False: it has been given up.
  virtual Result<bool> Register(const std::string& name, ServerId server,
                                const std::string& address, const std::string& node = "") = 0;
};

// Where a link gets the newest map from, as RemoteMaster::Map.
using MapSource = std::function<Result<PartitionMap>(uint64_t newer_than)>;

// Follows the map: what a server refuses, or one that is gone did not answer, is sent again to
// whoever has the partitions now. `bf16`: weights and gradients travel as bfloat16.
std::unique_ptr<ParameterLink> ConnectParameters(const PartitionMap& map, MapSource newer_map,
                                                 const JobKey& key, const models::Network& network,
                                                 bool bf16, std::stop_token stop);

}  // namespace sluice::elastic
