#include "elastic/queue/evaluation.h"

#include <algorithm>
#include <chrono>

#include "models/model.pb.h"

namespace sluice::elastic {

EvaluationRound::EvaluationRound(int64_t shards, models::Task task, size_t outputs,
                                 double lease_seconds)
    : shards_(shards),
      task_(task),
      outputs_(outputs),
      lease_seconds_(lease_seconds),
      metrics_(task, outputs) {}

void EvaluationRound::Start(Epoch epoch) {
  epoch_ = epoch;
  cursor_ = 0;
  groups_done_ = 0;
  rows_ = 0;
  checksum_ = 0;
  requeued_.clear();
  leases_.clear();
  metrics_ = models::Metrics(task_, outputs_);
  versions_.clear();
  compares_ = false;
  compared_.clear();
}

void EvaluationRound::StartComparing(Epoch epoch, std::vector<ShardId> shards) {
  Start(epoch);
  compares_ = true;
  compared_ = std::move(shards);
}

std::vector<ShardId> EvaluationRound::ShardsOfGroup(int64_t group) const {
  std::vector<ShardId> shards;
  const int64_t begin = group * kShardsPerTask;
  for (int64_t i = begin; i < std::min(size(), begin + kShardsPerTask); ++i) {
    shards.push_back(compares_ ? compared_[static_cast<size_t>(i)] : ShardId(i));
  }
  return shards;
}

std::vector<ShardId> EvaluationRound::ShardsOf(TaskId task) const {
  const auto found = leases_.find(task);
  return found == leases_.end() ? std::vector<ShardId>() : ShardsOfGroup(found->second.group);
}

TimePoint EvaluationRound::Deadline(TimePoint now) const {
  return now + std::chrono::duration_cast<TimePoint>(std::chrono::duration<double>(lease_seconds_));
}

std::optional<Task> EvaluationRound::Take(Incarnation owner, TaskId id, TimePoint now) {
  Lease lease;
  if (!requeued_.empty()) {
    lease.group = requeued_.front();
    requeued_.pop_front();
  } else if (cursor_ < groups()) {
    lease.group = cursor_++;
  } else {
    return std::nullopt;
  }
  lease.owner = owner;
  lease.deadline = Deadline(now);
  leases_[id] = lease;
  Task task;
  task.id = id;
  task.kind = compares_ ? Task::Kind::kCompare : Task::Kind::kEvaluate;
  task.epoch = epoch_;
  task.shards = ShardsOfGroup(lease.group);
  return task;
}

Result<bool> EvaluationRound::Report(Incarnation owner, const TaskReport& report) {
  const auto found = leases_.find(report.task);
  if (found == leases_.end() || found->second.owner != owner || !report.done) {
    return false;
  }
  if (compares_) {
    leases_.erase(found);
    ++groups_done_;
    return true;
  }
  ASSIGN_OR_RETURN(const models::Metrics metrics, models::Metrics::Deserialize(report.metrics));
  if (report.rows > 0 && !versions_.empty() && report.versions != versions_) {
    ++repeats_;
    Start(epoch_);
    return false;
  }
  if (report.rows > 0) {
    versions_ = report.versions;
  }
  metrics_.Merge(metrics);
  rows_ += report.rows;
  for (const uint64_t checksum : report.checksums) {
    checksum_ += checksum;
  }
  leases_.erase(found);
  ++groups_done_;
  return true;
}

void EvaluationRound::Renew(Incarnation owner, TimePoint now) {
  for (auto& [id, lease] : leases_) {
    if (lease.owner == owner) {
      lease.deadline = Deadline(now);
    }
  }
}

template <typename Predicate>
int EvaluationRound::RequeueIf(const Predicate& predicate) {
  int requeued = 0;
  for (auto it = leases_.begin(); it != leases_.end();) {
    if (!predicate(it->first, it->second)) {
      ++it;
      continue;
    }
    requeued_.push_front(it->second.group);
    it = leases_.erase(it);
    ++requeued;
  }
  return requeued;
}

int EvaluationRound::Release(Incarnation owner, const std::vector<TaskId>& but_for) {
  return RequeueIf([&](TaskId id, const Lease& lease) {
    return lease.owner == owner && std::find(but_for.begin(), but_for.end(), id) == but_for.end();
  });
}

int EvaluationRound::ExpireLeases(TimePoint now) {
  return RequeueIf([&](TaskId, const Lease& lease) { return lease.deadline <= now; });
}

}  // namespace sluice::elastic
