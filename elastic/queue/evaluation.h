#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/queue/task.h"
#include "models/metrics/metric.h"

namespace sluice::elastic {

// One evaluation over the validation rows of every shard. A group of shards is answered as a whole
// and counted once, by whoever answers first; nothing is ever added twice. All answers are about
// the same parameters: it begins anew when one comes that judges others. The last comparison of a
// job that went on from a checkpoint is dealt out in the same way. Pure; not thread-safe.
class EvaluationRound {
 public:
  // Shards asked for at a time: few answers, and little to do again when a worker dies.
  static constexpr int64_t kShardsPerTask = 32;

  EvaluationRound(int64_t shards, models::Task task, size_t outputs, double lease_seconds);

  void Start(Epoch epoch);
  // These shards are read instead, and compared with what they were: tasks of Kind::kCompare.
  void StartComparing(Epoch epoch, std::vector<ShardId> shards);
  // `id`: one that no other task has.
  std::optional<Task> Take(Incarnation owner, TaskId id, TimePoint now);
  // False: not this worker's task (any more), or answered already.
  Result<bool> Report(Incarnation owner, const TaskReport& report);
  void Renew(Incarnation owner, TimePoint now);
  int Release(Incarnation owner, const std::vector<TaskId>& but_for = {});
  int ExpireLeases(TimePoint now);
  bool Done() const { return groups_done_ == groups(); }
  // Of a task that is leased; else none.
  std::vector<ShardId> ShardsOf(TaskId task) const;
  size_t leased() const { return leases_.size(); }

  const models::Metrics& metrics() const { return metrics_; }
  int64_t rows() const { return rows_; }
  // Of the rows of all shards, as far as the answers say; 0: they do not.
  uint64_t checksum() const { return checksum_; }
  // Of the parameters that are judged, by partition.
  const std::vector<int64_t>& versions() const { return versions_; }
  int repeats() const { return repeats_; }

 private:
  struct Lease {
    int64_t group = 0;
    Incarnation owner = kNobody;
    TimePoint deadline{};
  };
  int64_t size() const { return compares_ ? static_cast<int64_t>(compared_.size()) : shards_; }
  int64_t groups() const { return (size() + kShardsPerTask - 1) / kShardsPerTask; }
  std::vector<ShardId> ShardsOfGroup(int64_t group) const;
  TimePoint Deadline(TimePoint now) const;
  template <typename Predicate>
  int RequeueIf(const Predicate& predicate);

  const int64_t shards_;
  const models::Task task_;
  const size_t outputs_;
  const double lease_seconds_;
  Epoch epoch_ = kNoEpoch;
  int64_t cursor_ = 0;
  int64_t groups_done_ = 0;
  int64_t rows_ = 0;
  uint64_t checksum_ = 0;
  std::deque<int64_t> requeued_;
  std::map<TaskId, Lease> leases_;
  models::Metrics metrics_;
  std::vector<int64_t> versions_;
  int repeats_ = 0;
  bool compares_ = false;
  std::vector<ShardId> compared_;
};

}  // namespace sluice::elastic
