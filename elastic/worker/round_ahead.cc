#include "elastic/worker/round_ahead.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "elastic/worker/worker_tasks_internal.h"

namespace sluice::elastic {
namespace {

// With more rows than this in its lanes a worker does not hold those of two rounds.
constexpr size_t kMostHeldBytes = size_t{16} << 20;

// Whether these are the task's rows.
bool IsFor(const Task& task, const Lease& lease) {
  return lease.task.shard == task.shard && lease.task.epoch == task.epoch;
}

}  // namespace

void RoundAhead::Expect(const std::vector<std::unique_ptr<Lease>>& held, Rank rank,
                        size_t members) {
  credit_ = 0;
  next_.clear();
  size_t bytes = 0;
  for (const std::unique_ptr<Lease>& lease : held) {
    bytes += lease->rows->train.Bytes() + lease->rows->validation.Bytes();
  }
  if (!held.empty() && bytes <= kMostHeldBytes) {
    next_ = tasks_.LanesAfter(held.front()->task, rank, members);
    std::reverse(next_.begin(), next_.end());
  }
  const auto wanted = [this](const std::unique_ptr<Lease>& lease) {
    return std::erase_if(next_, [&lease](const Task& task) { return IsFor(task, *lease); }) > 0;
  };
  std::erase_if(read_, [&wanted](const auto& lease) { return !wanted(lease); });
  if (reading_ != nullptr && !wanted(reading_)) {
    Release();
  }
}

void RoundAhead::Read(size_t trained_rows) {
  // Shards differ, and there are validation rows in addition.
  credit_ += trained_rows + trained_rows / 4;
  if (credit_ < WorkerTasks::kLeastRows || !tasks_.Stopped().ok() ||
      tasks_.waiting_for_database()) {  // the wait for the database can happen later
    return;
  }
  if (reading_ == nullptr) {
    if (next_.empty()) {
      return;
    }
    Result<std::unique_ptr<Lease>> started = tasks_.Start(std::move(next_.back()));
    next_.pop_back();
    if (!started.ok()) {
      next_.clear();
      return;
    }
    reading_ = *std::move(started);
  }
  const Result<bool> complete = tasks_.TryRead(reading_.get(), std::exchange(credit_, 0));
  if (!complete.ok()) {
    log::Info("reading ahead: {}", complete.status().message());
    reading_ = nullptr;
    next_.clear();
  } else if (*complete) {
    read_.push_back(std::move(reading_));
  }
}

Result<std::unique_ptr<Lease>> RoundAhead::Take(const Task& task) {
  std::unique_ptr<Lease> lease;
  const auto found = std::find_if(read_.begin(), read_.end(),
                                  [&task](const auto& read) { return IsFor(task, *read); });
  if (found != read_.end()) {
    lease = std::move(*found);
    read_.erase(found);
    lease->Become(task);
  } else if (reading_ != nullptr && IsFor(task, *reading_)) {
    lease = std::move(reading_);
    lease->Become(task);
    for (bool complete = false; !complete;) {
      ASSIGN_OR_RETURN(complete, tasks_.Read(lease.get(), WorkerTasks::kLoadRows));
    }
  }
  return lease;
}

void RoundAhead::Release() {
  if (reading_ != nullptr) {
    tasks_.Abandon();
    reading_ = nullptr;
  }
}

}  // namespace sluice::elastic
