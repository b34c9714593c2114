#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/parameters/parameter_request.h"
#include "elastic/parameters/partition.h"

namespace sluice::elastic {

// The partitions that one server holds, under one lock. It serves some of them, according to a map
// with a version: a request with another version is NotFound, and changes nothing. Thread-safe: a
// gradient is applied as a whole or not at all, and a pull sees either all or nothing of it.
class ParameterShard {
 public:
  struct Options {
    uint32_t partitions = 1;  // of the job
    bool synchronous = false;
    bool empty = false;  // partitions are added by Create and Load; otherwise all exist and are
                         // served
  };
  // `base`: values to continue from.
  static Result<std::unique_ptr<ParameterShard>> Make(const models::ModelSpec& spec,
                                                      const models::Network& network,
                                                      const Options& options,
                                                      const models::NetworkWeights* base);

  // Applies the batch, or finds that it has been applied before: OK in both cases. Errors: NotFound
  // (the map), Aborted (the lease now belongs to another worker), InvalidArgument (unknown row,
  // other shape, a gradient that is not finite); then nothing has changed. `applied` is called in
  // the order in which pushes change the parameters, under the lock.
  Status Push(const PushRequest& request, const std::function<void()>& applied = {});

  // Applies the closed step's mean gradient, computed elsewhere (all-reduce), to a replica that
  // holds everything. Errors as for Push.
  Status ApplyStep(const PushRequest& sum);

  // Fills the target. In synchronous mode waits up to `wait_seconds` for the previous step to
  // close, then returns DeadlineExceeded.
  Status Pull(const PullRequest& request, const PullTarget& target, double wait_seconds);

  // A copy of a push that another server applied, for those of its partitions for which `mine` is
  // true.
  Status PushReplica(const PushRequest& request, const std::function<bool(uint32_t)>& mine);

  // Placement. Served partitions must be held.
  void Serve(MapVersion map_version, std::vector<uint32_t> partitions);
  void Create(uint32_t partition, const models::NetworkWeights* base);
  void Drop(uint32_t partition);
  bool Holds(uint32_t partition) const;
  // The partition's current state. NotFound: it is not here.
  Result<PartitionImage> Capture(uint32_t partition) const;
  // The bytes of a partition, in parts; `sink` gets them under the lock, so that it knows which
  // pushes they contain. `last` is called at the end, under the same lock.
  Status Save(uint32_t partition, size_t part_bytes, const PartSink& sink,
              const std::function<Status()>& last = {}) const;
  Result<std::string> Save(uint32_t partition) const;
  // A partition that is already held keeps its place in memory.
  Status Load(uint32_t partition, ByteSource& bytes);
  Status Load(uint32_t partition, std::string_view bytes);

  // The live dense values of a shard of one partition, for a worker in the same thread that is the
  // only one to push.
  std::vector<const float*> LiveDense() const;

  // Of the served partitions; NotFound if the map is another.
  Result<BatchIndex> AppliedBatches(MapVersion map_version, Epoch epoch, ShardId shard) const;
  int64_t version(uint32_t partition = 0) const;
  int64_t rows() const;  // of all tables and partitions

  // Of the served partitions, which are returned with their kept weights; `kept` is called under
  // the lock, like `applied`. Errors: NotFound (the map), those of Partition::KeepBest.
  using Kept = std::map<uint32_t, std::shared_ptr<const models::NetworkWeights>>;
  Result<Kept> KeepBest(MapVersion map_version, const KeepOrder& order,
                        const std::function<void()>& kept = {});
  Status KeepBestReplica(std::span<const uint32_t> partitions, int64_t number);
  Result<models::NetworkWeights> Export(MapVersion map_version, uint32_t partition) const;
  // For a shard that holds all partitions.
  Result<models::NetworkWeights> ExportAll(const models::Network& network) const;
  // Wakes every waiting Pull, which then returns Cancelled.
  void Close();

  const ParameterRules& rules() const { return rules_; }

 private:
  explicit ParameterShard(ParameterRules rules);

  Status CheckMap(MapVersion map_version) const REQUIRES(mutex_);
  Result<PartitionImage> CaptureHeld(uint32_t partition) const REQUIRES(mutex_);
  Status Apply(const PushRequest& request, const RequestCuts& cuts,
               const std::function<bool(uint32_t)>& mine) REQUIRES(mutex_);

  const ParameterRules rules_;

  mutable Mutex mutex_;
  std::condition_variable step_closed_;
  std::vector<std::unique_ptr<Partition>> partitions_ GUARDED_BY(mutex_);  // null: not here
  std::vector<uint32_t> served_ GUARDED_BY(mutex_);
  MapVersion map_version_ GUARDED_BY(mutex_) = kNoMapVersion;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace sluice::elastic
