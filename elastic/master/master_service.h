#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "elastic/master/master_host.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

// The master's gRPC door: workers and parameter servers of one job come in here. It only
// translates; what happens is decided by the host.
class MasterServer {
 public:
  // A parameter server says that it is there. False: it has been given up. Thread-safe.
  using Registered =
      std::function<bool(ServerId server, const std::string& address, const std::string& node)>;
  // Listens where the endpoint says, at once.
  static Result<std::unique_ptr<MasterServer>> Start(const JobEndpoint& endpoint,
                                                     MasterHost& master, Registered registered);
  virtual ~MasterServer() = default;  // ends calls that still wait
  virtual std::string address() const = 0;
  // Shows workers this map from now on.
  virtual void Publish(const PartitionMap& map) = 0;
  // What workers and what parameter servers that begin are told (JobEndpoint::configures).
  virtual void OfferConfigs(std::shared_ptr<const std::string> of_workers,
                            std::shared_ptr<const std::string> of_servers) = 0;
  // A worker keeps these snapshots alive; "": none. Told with each heartbeat, on any thread.
  using Held =
      std::function<void(const std::string& snapshot, const std::string& validation_snapshot)>;
  virtual void HearHeld(Held held) = 0;
  // What the epoch adds up, instead of the one before.
  virtual void OfferPass(Epoch epoch, std::shared_ptr<const std::string> pass) = 0;
  // What processes that begin continue from (models::SaveWeights); null: nobody needs it any more.
  virtual void OfferBase(std::shared_ptr<const std::string> weights) = 0;
};

}  // namespace sluice::elastic
