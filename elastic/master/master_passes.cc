#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "elastic/master/master.h"

// Jobs that make passes over all rows (Options::passes): each epoch is one of them.
namespace sluice::elastic {
namespace {

constexpr size_t kReadTogether = 4;

}  // namespace

// As many as are an equal share, of those that it has; of those that nobody has a few, which have
// to be read first, so that the last ones are taken by whoever is first; of another worker's one.
std::vector<Task> Master::TakeShards(Incarnation worker, TimePoint now) {
  const auto sharers = static_cast<int64_t>(std::max<size_t>(1, pool_.members().joined()));
  const auto share = static_cast<size_t>((queue_.shards() + sharers - 1) / sharers);
  int dearest = PassShards::kAnothers;
  const auto cost = [&](ShardId shard) {
    const std::optional<int> own = pass_shards_.Cost(worker, shard, now);
    return own.has_value() && *own > dearest ? std::nullopt : own;
  };
  std::vector<Task> tasks;
  size_t most = 1;
  while (tasks.size() < most) {
    std::optional<Task> task = queue_.TakeBest(worker, cost, now);
    if (!task.has_value()) {
      break;
    }
    if (tasks.empty()) {
      const int first = pass_shards_.Cost(worker, task->shard, now).value_or(dearest);
      most = first == PassShards::kOwn       ? share
             : first == PassShards::kNobodys ? std::min<size_t>(kReadTogether, (share + 1) / 2)
                                             : 1;
      dearest = first;
      if (queue_.Suspects({task->id})) {
        most = 1;
      }
    }
    tasks.push_back(*std::move(task));
  }
  return tasks;
}

// The first report of a finished shard counts; the sums have the same bits from every worker.
Result<TaskQueue::Answer> Master::ReportPass(Incarnation worker, const TaskReport& report,
                                             TimePoint now) {
  const auto& leases = queue_.state().leases();
  std::vector<TaskReport> reports = report.merged;
  reports.push_back(report);
  reports.back().merged.clear();
  std::string sums = std::exchange(reports.back().sums, {});
  const auto is_missing = [&](const TaskReport& one) {
    const auto lease = leases.find(one.task);
    return lease == leases.end() || lease->second.owner != worker;
  };
  // One whose lease has gone to another worker: its part cannot be taken out of the sums.
  if (reports.size() > 1 && std::any_of(reports.begin(), reports.end(), is_missing)) {
    const bool repeated = queue_.state().Remembers(report.task);
    for (const TaskReport& one : reports) {
      queue_.Release(worker, one.task);
    }
    return repeated ? TaskQueue::Answer::kDuplicate : TaskQueue::Answer::kRejected;
  }
  TaskQueue::Answer answer = TaskQueue::Answer::kRejected;
  ShardId first = ShardId(queue_.shards());
  for (const TaskReport& one : reports) {
    const auto lease = leases.find(one.task);
    const ShardId shard = lease == leases.end() ? ShardId::First() : lease->second.task.shard;
    ASSIGN_OR_RETURN(answer, queue_.Report(worker, one, now));
    if (answer == TaskQueue::Answer::kAccepted && one.done) {
      first = std::min(first, shard);
      pass_shards_.Did(worker, shard, now);
    }
  }
  if (first < ShardId(queue_.shards())) {
    passes_.Add(first, std::move(sums));
  }
  return answer;
}

void Master::NextPass(TimePoint now) {
  if (phase_ == Phase::kBetweenPasses) {
    phase_ = Phase::kTraining;
    queue_.StartNextEpoch();
    pass_shards_.BeginPass(now);
  }
}

void Master::EndPasses(TimePoint now) {
  if (phase_ != Phase::kBetweenPasses) {
    return;
  }
  ends_with_epoch_ = true;
  if (options_.evaluation_shards > 0) {
    phase_ = Phase::kEvaluating;
    evaluation_.Start(queue_.epoch());
  } else {
    EndEpoch(now);
  }
}

void Master::Remember(std::string what, TimePoint now) {
  journal_.Remember(std::move(what));
  CheckpointIfDue(now);
}

int64_t Master::steps() const {
  return options_.passes ? static_cast<int64_t>(std::max<size_t>(1, remembered().size())) - 1
                         : queue_.steps();
}

void Master::ResumePasses(std::vector<std::string> remembered, const Ledger::Known& rows) {
  for (std::string& what : remembered) {
    journal_.Remember(std::move(what));
  }
  queue_.Expect(rows);
  checkpoints_.StartFrom(steps());
  outbox_.AddEvent("resumed", fmt::format("at step {}, the rounds of trees so far", steps()));
}

void Master::BeginPassesAgain(TimePoint now) {
  if (phase_ == Phase::kFailed) {
    return;
  }
  remembered().empty()
      ? outbox_.AddEvent("training_begins_again", "what had been added up was the last master's")
      : outbox_.AddEvent("training_goes_on",
                         fmt::format("after {} rounds of trees", remembered().size() - 1));
  const Ledger::Known rows = queue_.ledger().known();  // as of a checkpoint
  queue_ = TaskQueue(options_.queue);
  queue_.Expect(rows);
  queue_.TakeOver(term_, {}, now);
  journal_.StartOver();
  passes_.Clear();
  phase_ = Phase::kTraining;
  meter_.BeginAgain();
  validation_.ForgetMetrics();
}

}  // namespace sluice::elastic
