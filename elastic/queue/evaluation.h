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
// and counted once, for the first worker to answer; nothing is ever added twice. All answers must
// judge the same parameters: the evaluation begins again when one judges others. The final
// comparison of a job resumed from a checkpoint is handed out in the same way. Pure; not
// thread-safe.
class EvaluationRound {
 public:
  // Shards per task: few answers, and little to repeat when a worker dies.
  static constexpr int64_t kShardsPerTask = 32;

  EvaluationRound(int64_t shards, models::Task task, size_t outputs, double lease_seconds);

  void Start(Epoch epoch);
  // Reads these shards instead, and compares them with their earlier content: tasks of
  // Kind::kCompare.
  void StartComparing(Epoch epoch, std::vector<ShardId> shards);
  // `id`: not used by any other task.
  std::optional<Task> Take(Incarnation owner, TaskId id, TimePoint now);
  // False: not this worker's task (any more), or already answered.
  Result<bool> Report(Incarnation owner, const TaskReport& report);
  void Renew(Incarnation owner, TimePoint now);
  int Release(Incarnation owner, const std::vector<TaskId>& but_for = {});
  int ExpireLeases(TimePoint now);
  bool Done() const { return groups_done_ == groups(); }
  // For a leased task; else empty.
  std::vector<ShardId> ShardsOf(TaskId task) const;
  size_t leased() const { return leases_.size(); }

  const models::Metrics& metrics() const { return metrics_; }
  int64_t rows() const { return rows_; }
  // Of the rows of all shards, if the answers contain it; 0: they do not.
  uint64_t checksum() const { return checksum_; }
  // Of the judged parameters, by partition.
  const std::vector<int64_t>& versions() const { return versions_; }
  int repeats() const { return repeats_; }

 private:
  struct Lease {
    int64_t group = 0;
    Incarnation owner = kNoIncarnation;
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
