#include <unordered_map>
#include <utility>
#include <vector>

#include "elastic/worker/training_loop_internal.h"
#include "models/pass_training.h"
#include "planner/plan.pb.h"

// A model that is found by passes: each epoch is a pass over all rows, each shard is one batch.
// What the shards that the master hands out together add is sent to it with their report.
namespace sluice::elastic {
namespace {

class PassLoop final : public TrainingLoop {
 public:
  PassLoop(WorkerTasks& tasks, const Worker::Job& job, std::unique_ptr<models::PassSums> sums)
      : tasks_(tasks), pass_of_(job.pass), sums_(std::move(sums)) {}

  Status Advance() override {
    ASSIGN_OR_RETURN(const std::vector<Task> tasks, tasks_.AskForShards());
    for (const Task& task : tasks) {
      RETURN_IF_ERROR(task.kind == Task::Kind::kTrain ? Add(task) : tasks_.Judge(task));
    }
    return Report();
  }

 private:
  Status Add(const Task& task) {
    const Status fetched = Fetch({TermOf(task.id), task.epoch});
    if (fetched.code() == Code::kNotFound) {  // other workers have finished the epoch
      tasks_.master().Abandon(task.id);
      return Status();
    }
    RETURN_IF_ERROR(fetched);
    return sums_->NeedsRows(task.shard.value()) ? AddRows(task) : AddKnown(task);
  }

  Status AddRows(const Task& task) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Lease> lease, tasks_.Start(task));
    ASSIGN_OR_RETURN(const bool mine, tasks_.ReadRest(lease.get()));
    if (!mine) {
      return Status();
    }
    const int64_t shard = task.shard.value();
    const Status added = [&] {
      const PhaseScope learning(tasks_.clock(), Phase::kLearning);
      return sums_->Add(shard, &lease->rows->train, &lease->rows->validation);
    }();
    if (!added.ok()) {
      return tasks_.Fail(task, added);
    }
    if (!lease->done()) {
      RETURN_IF_ERROR(lease->Count({}));
    }
    lease->report.done = true;
    lease->report.end_of_shard = true;
    done_.push_back(lease->report);
    TaskReport& known = known_[task.shard];
    known = lease->report;
    known.rows_read = 0;
    known.read_seconds = 0;
    return Status();
  }

  // A shard whose rows are not needed any more.
  Status AddKnown(const Task& task) {
    const Status added = [&] {
      const PhaseScope learning(tasks_.clock(), Phase::kLearning);
      return sums_->Add(task.shard.value(), nullptr, nullptr);
    }();
    if (!added.ok()) {
      return tasks_.Fail(task, added);
    }
    tasks_.Forget(task.shard);
    done_.push_back(known_.at(task.shard));
    done_.back().task = task.id;
    return Status();
  }

  Status Report() {
    if (done_.empty()) {
      return Status();
    }
    TaskReport report = std::move(done_.back());
    done_.pop_back();
    report.merged = std::exchange(done_, {});
    report.sums = sums_->Take();
    // Where it counts no more, others have the shards.
    return tasks_.master().Report(report).status();
  }

  // A pass of a job: each master counts its own.
  using PassId = std::pair<Term, Epoch>;

  Status Fetch(PassId pass) {
    if (pass == pass_) {
      return Status();
    }
    const Epoch epoch = pass.second;
    const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
    done_.clear();  // that pass has ended without them
    ASSIGN_OR_RETURN(const std::string step, pass_of_(epoch, false));
    ASSIGN_OR_RETURN(bool follows, sums_->Begin(step));
    if (!follows) {
      ASSIGN_OR_RETURN(const std::string whole, pass_of_(epoch, true));
      ASSIGN_OR_RETURN(follows, sums_->Begin(whole));
    }
    if (!follows) {
      return Internal("a pass whose whole is not enough");
    }
    pass_ = pass;
    return Status();
  }

  WorkerTasks& tasks_;
  const std::function<Result<std::string>(Epoch, bool)> pass_of_;
  const std::unique_ptr<models::PassSums> sums_;
  PassId pass_{kNoTerm, kNoEpoch};
  std::vector<TaskReport> done_;                   // not reported yet
  std::unordered_map<ShardId, TaskReport> known_;  // what a report says of shards without rows
};

}  // namespace

Result<std::unique_ptr<TrainingLoop>> MakePassLoop(WorkerTasks& tasks, const Worker::Job& job) {
  ASSIGN_OR_RETURN(auto sums, models::PassSums::Make(job.plan.model()));
  return std::unique_ptr<TrainingLoop>(std::make_unique<PassLoop>(tasks, job, std::move(sums)));
}

}  // namespace sluice::elastic
