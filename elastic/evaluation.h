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
#include "elastic/task.h"
#include "models/metric.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::elastic {

// The task whose metrics a model is judged by.
models::Task TaskOfModel(const models::ModelSpec& spec);

// One evaluation over the validation rows of every shard. A group of shards is answered as a whole
// and counted once, by whoever answers first; nothing is ever added twice. All answers are about
// the same parameters: it begins anew when one comes that judges others. Pure; not thread-safe.
class EvaluationRound {
 public:
  // Shards asked for at a time: few answers, and little to do again when a worker dies.
  static constexpr int64_t kShardsPerTask = 32;

  EvaluationRound(int64_t shards, models::Task task, size_t outputs, double lease_seconds);

  void Start(uint32_t epoch);
  // `first_id`: ids that no other task has.
  std::optional<Task> Take(Incarnation owner, int64_t id, TimePoint now);
  // False: not this worker's task (any more), or answered already.
  Result<bool> Report(Incarnation owner, const TaskReport& report);
  void Renew(Incarnation owner, TimePoint now);
  int Release(Incarnation owner, const std::vector<int64_t>& but_for = {});
  int ExpireLeases(TimePoint now);
  bool Done() const { return groups_done_ == groups_; }
  size_t leased() const { return leases_.size(); }

  const models::Metrics& metrics() const { return metrics_; }
  int64_t rows() const { return rows_; }
  // Of the parameters that are judged, by partition.
  const std::vector<int64_t>& versions() const { return versions_; }
  int repeats() const { return repeats_; }

 private:
  struct Lease {
    int64_t group = 0;
    Incarnation owner = 0;
    TimePoint deadline{};
  };
  TimePoint Deadline(TimePoint now) const;
  template <typename Predicate>
  int RequeueIf(const Predicate& predicate);

  const int64_t shards_;
  const int64_t groups_;
  const models::Task task_;
  const size_t outputs_;
  const double lease_seconds_;
  uint32_t epoch_ = 0;
  int64_t cursor_ = 0;
  int64_t groups_done_ = 0;
  int64_t rows_ = 0;
  std::deque<int64_t> requeued_;
  std::map<int64_t, Lease> leases_;  // by task id
  models::Metrics metrics_;
  std::vector<int64_t> versions_;
  int repeats_ = 0;
};

}  // namespace sluice::elastic
