#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/profile.h"
#include "base/status.h"
#include "elastic/master/master_host.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/job_endpoint.h"
#include "models/pass_training.h"

namespace sluice::elastic {

// The master's gRPC server, for workers and parameter servers of one job. It only translates; the
// host decides.
class MasterServer {
 public:
  // A parameter server that registers.
  struct ReadyServer {
    std::string name;  // of its process
    ServerId server;
    std::string address, node;
    bool leaving = false;  // it was told to end
  };
  // False: it is not needed any more, or belongs to an earlier run of the job. Thread-safe.
  using Registered = std::function<bool(const ReadyServer& ready)>;
  // Listens at the endpoint, immediately.
  static Result<std::unique_ptr<MasterServer>> Start(const JobEndpoint& endpoint,
                                                     MasterHost& master, Registered registered);
  virtual ~MasterServer() = default;  // ends calls that are still waiting
  virtual std::string address() const = 0;
  // Shows workers this map from now on.
  virtual void Publish(const PartitionMap& map) = 0;
  // The configurations that starting workers and parameter servers receive
  // (JobEndpoint::configures).
  virtual void OfferConfigs(std::shared_ptr<const std::string> of_workers,
                            std::shared_ptr<const std::string> of_servers) = 0;
  // A worker on that node keeps these snapshots alive; "": none. Called with each heartbeat, on any
  // thread.
  using Held = std::function<void(const std::string& node, const std::string& snapshot,
                                  const std::string& validation_snapshot)>;
  virtual void HearHeld(Held held) = 0;
  // A process has had so many bytes resident at most. Called with each heartbeat, on any thread.
  using Used = std::function<void(Role role, int64_t peak_bytes)>;
  virtual void HearUsed(Used used) = 0;
  // What the next epoch adds up.
  virtual void OfferPass(Epoch epoch, models::Pass pass) = 0;
  // The weights from which starting processes continue, or a model that is to be judged, as it is
  // stored; null: not needed any more.
  virtual void OfferBase(std::shared_ptr<const std::string> weights) = 0;
  // The time of all workers that have called so far, lost ones too, as of their last call.
  virtual Profile workers_profile() const = 0;
};

}  // namespace sluice::elastic
