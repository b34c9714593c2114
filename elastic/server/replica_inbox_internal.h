#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/parameters/partition_map.h"

namespace sluice::elastic {

class ReplicaEntry;
class ReplicateRequest;

// Shipments from other servers: kept in the order of arrival, and applied by a thread of its own,
// each entry once. Thread-safe.
class ReplicaInbox {
 public:
  explicit ReplicaInbox(ParameterShard& shard);
  ~ReplicaInbox();

  // Waits while many shipments are unapplied. An error: this replica cannot follow any more, or is
  // stopping.
  Status AwaitRoom();
  void Put(ReplicateRequest* request);  // moves it out
  // Waits until everything that was put has been applied.
  Status AwaitApplied();
  // By partition: the server whose pushes are applied, kNoServer: none. A partition that is shipped
  // whole is followed from then on.
  void SetSources(std::vector<ServerId> sources);
  // An error: it does not follow any more, and its copies for others are useless.
  Status broken() const;
  void Close();

 private:
  struct Shipment;

  void Work(const std::stop_token& stop);
  Status Apply(const Shipment& shipment);
  void BeginStream(ServerId from);
  // Not seen before on this stream, or a later one.
  bool IsNews(ServerId from, uint64_t stream, uint64_t sequence);
  Status ApplyEntry(ServerId from, const ReplicaEntry& entry);
  Status TakePiece(ServerId from, uint32_t partition, const ReplicaEntry& entry);

  ParameterShard& shard_;

  mutable Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Shipment>> shipments_ GUARDED_BY(mutex_);
  size_t bytes_ GUARDED_BY(mutex_) = 0;
  bool applying_ GUARDED_BY(mutex_) = false;
  bool closed_ GUARDED_BY(mutex_) = false;
  Status broken_ GUARDED_BY(mutex_);  // it does not follow any more
  std::vector<ServerId> sources_ GUARDED_BY(mutex_);
  std::vector<ServerId> adopted_ GUARDED_BY(mutex_);  // set by SetSources

  // Used by the thread only.
  std::map<ServerId, std::pair<uint64_t, uint64_t>> seen_;  // stream, sequence
  std::map<uint32_t, std::deque<std::string>> pieces_;      // of a state being received
  std::jthread thread_;                                     // last: uses the members above
};

}  // namespace sluice::elastic
