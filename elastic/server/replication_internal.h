#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/server/replica_inbox_internal.h"
#include "elastic/transport/connection.h"

namespace sluice::elastic {

// For calls that take milliseconds; the master deals with processes that hang.
inline constexpr auto kReplicaPatience = std::chrono::seconds(15);

// A parameter server's role among the others: which partitions it serves, by which version of the
// map; what it ships to the servers that follow it, and what it receives from those that it
// follows.
//
// A primary ships every push in the order in which it applied it, and acknowledges it when each of
// its followers has it; a follower applies its pushes on a thread of its own, in the same order.
// Kernels are deterministic, so their states are equal. A server that has been given up is refused
// by its followers, and acknowledges nothing any more. Thread-safe.
class Replication {
 public:
  struct Options {
    ServerId self;
    JobKey key;
    std::unique_ptr<models::NetworkWeights> base;  // of partitions that are created
  };
  Replication(Options options, ParameterShard& shard);
  ~Replication();

  struct Role {
    MapVersion map_version = kNoMapVersion;
    std::vector<uint32_t> partitions;  // served
  };
  std::shared_ptr<const Role> role() const;

  // Called under the shard's lock, in the order of the changes. Followers are added while the shard
  // is locked or serves nothing.
  void Ship(const std::shared_ptr<ReplicaEntry>& entry);
  // Waits until all shipments have arrived at all followers. NotFound: this server has been given
  // up.
  Status WaitShipped();

  // The master's orders (elastic.proto, InstallRequest), one at a time. `Expect` precedes an
  // order's turn: a Freeze that waits for a follower ends for a newer map.
  void Expect(MapVersion map_version);
  Status Freeze(const PartitionMap& map);
  // `create` makes a partition that should be held and is not, or any partition (`anew`): null
  // except for a job's first map.
  using Create = std::function<Status(uint32_t partition)>;
  Status Adopt(const PartitionMap& map, const Create& create, bool anew);
  Status CreateFresh(uint32_t partition);
  void Release(const PartitionMap& map);
  Status Fill(uint32_t partition, ServerId server, const std::string& address);

  // An error: this server cannot follow its primaries any more.
  Status health() const { return inbox_.broken(); }

  // A shipment from another server. True: accepted (the message is empty), and kept until it is
  // applied. False: refused.
  Result<bool> Receive(ReplicateRequest* request);

  void Close();

 private:
  struct Follower {
    std::deque<std::shared_ptr<ReplicaEntry>> queue;  // not acknowledged
    std::jthread sender;
  };

  void Follow(ServerId server, const std::string& address) REQUIRES(mutex_);
  // Sends until `stop` or a refusal; an error: the connection has failed.
  Status Send(ServerId server, const std::string& address, uint64_t stream,
              const std::stop_token& stop);
  // Waits for some; as many as one message takes. None: `stop`.
  std::vector<std::shared_ptr<ReplicaEntry>> NextEntries(ServerId server,
                                                         const std::stop_token& stop,
                                                         MapVersion* map_version);
  bool Arrived(const Follower& follower, uint64_t sequence) const;
  void SetRole(MapVersion map_version, std::vector<uint32_t> partitions);

  const ServerId self_;
  const JobKey key_;
  const Result<std::shared_ptr<const Encryption>> encryption_;
  std::unique_ptr<models::NetworkWeights> base_;  // until the first map is in use
  ParameterShard& shard_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<const Role> role_ GUARDED_BY(mutex_);
  PartitionMap map_ GUARDED_BY(mutex_);
  MapVersion expected_ GUARDED_BY(mutex_) = kNoMapVersion;  // version of the newest ordered map
  bool closed_ GUARDED_BY(mutex_) = false;
  bool given_up_ GUARDED_BY(mutex_) = false;
  uint64_t sequence_ GUARDED_BY(mutex_) = 0;
  uint64_t arrivals_ GUARDED_BY(mutex_) = 0;  // of shipments with their followers
  uint64_t streams_ GUARDED_BY(mutex_) = 0;
  std::map<ServerId, std::unique_ptr<Follower>> followers_ GUARDED_BY(mutex_);

  ReplicaInbox inbox_;
};

}  // namespace sluice::elastic
