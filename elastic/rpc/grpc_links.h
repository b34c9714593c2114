#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/profile.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/links.h"
#include "elastic/rpc/world.h"
#include "elastic/transport/job_key.h"

namespace sluice::elastic {

// A worker's links to other processes. Every call has a deadline; a call that does not get through
// is repeated with the same identity, so that it counts once however often it arrives; `stop` ends
// the repetitions.
class RemoteMaster : public MasterLink, public WorldLink {
 public:
  static std::unique_ptr<RemoteMaster> Connect(const std::string& address, const JobKey& key,
                                               Incarnation worker, std::stop_token stop);
  // From now on calls tell the master what the worker's thread has spent its time on; those in
  // which it waits count as exchange. `clock` must outlive the last of them.
  virtual void ReportTime(PhaseClock* clock) = 0;
  // The map of the partitions. The master waits a little for one that is newer than `newer_than`;
  // version 0: the servers are not there yet, ask again.
  virtual Result<PartitionMap> Map(MapVersion newer_than) = 0;
  // The weights to continue from, of this many bytes. NotFound: all processes that need them have
  // them.
  virtual Result<models::NetworkWeights> Base(uint64_t bytes) = 0;
  virtual Result<std::string> BaseBytes(uint64_t bytes) = 0;  // as stored
  // What the epoch adds up (models/pass_training.h), as a step or whole. NotFound: another epoch is
  // running.
  virtual Result<std::string> Pass(Epoch epoch, bool whole) = 0;
  // The configuration shared by all workers (or parameter servers) of the job, a part of a
  // ProcessConfig.
  virtual Result<std::string> Configure(bool server) = 0;
  // What a heartbeat reports in addition to being alive.
  struct HeartbeatReport {
    std::string waits_for;                      // "": unchanged
    std::string rows_read_again;                // "": as it was told before
    std::string snapshot, validation_snapshot;  // that this process keeps alive; "": none
    std::string node;                           // where it runs
  };
  // Thread-safe. True: the job is over.
  virtual Result<bool> Heartbeat(const HeartbeatReport& report) = 0;
  // From a parameter server: it is running; `leaving`: it was told to end. False: it is not needed
  // any more.
  virtual Result<bool> Register(const std::string& name, ServerId server,
                                const std::string& address, const std::string& node = "",
                                bool leaving = false) = 0;
};

// The source of a link's newest map, like RemoteMaster::Map.
using MapSource = std::function<Result<PartitionMap>(MapVersion newer_than)>;

// Follows the map: requests that a server refuses, or that a lost one did not answer, are sent
// again to the current holders of the partitions. `bf16`: weights and gradients are sent as
// bfloat16.
std::unique_ptr<ParameterLink> ConnectParameters(const PartitionMap& map, MapSource newer_map,
                                                 const JobKey& key, const models::Network& network,
                                                 bool bf16, std::stop_token stop);

}  // namespace sluice::elastic
