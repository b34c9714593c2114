#include <unordered_map>
#include <utility>

#include "elastic/worker/pass_sums.h"
#include "elastic/worker/training_loop_internal.h"
#include "models/linear_optimum.h"
#include "planner/plan.pb.h"

// The optimum of a linear model: each epoch is a pass over all rows, each shard is one batch. The
// sums of a shard are sent to the master with the report and added up there.
namespace sluice::elastic {
namespace {

class PassLoop final : public TrainingLoop {
 public:
  PassLoop(WorkerTasks& tasks, const Worker::Job& job, std::unique_ptr<models::LinearSums> sums)
      : tasks_(tasks), pass_of_(job.pass), sums_(std::move(sums)) {}

  Status Advance() override {
    ASSIGN_OR_RETURN(const std::unique_ptr<Lease> lease, tasks_.Take(true));
    if (lease == nullptr) {
      return Status();
    }
    const Task task = lease->task;
    const Status fetched = Fetch(task.epoch);
    if (fetched.code() == Code::kNotFound) {  // other workers have finished the epoch
      tasks_.master().Abandon(task.id);
      return Status();
    }
    RETURN_IF_ERROR(fetched);
    std::vector<double> sums;
    const Status added = [&] {
      const PhaseScope learning(tasks_.clock(), Phase::kLearning);
      return sums_->Sum(pass_, lease->rows->train, &kept_[task.shard], &sums);
    }();
    if (!added.ok()) {
      return tasks_.Fail(task, added);
    }
    if (!lease->done()) {
      RETURN_IF_ERROR(lease->Count({}));
    }
    lease->report.sums = SumsToBytes(sums);
    return tasks_.Report(lease.get(), true).status();
  }

 private:
  Status Fetch(Epoch epoch) {
    if (epoch == epoch_) {
      return Status();
    }
    const PhaseScope exchanging(tasks_.clock(), Phase::kExchange);
    ASSIGN_OR_RETURN(const std::string bytes, pass_of_(epoch));
    ASSIGN_OR_RETURN(pass_, models::LinearPass::Parse(bytes));
    epoch_ = epoch;
    return Status();
  }

  WorkerTasks& tasks_;
  const std::function<Result<std::string>(Epoch)> pass_of_;
  const std::unique_ptr<models::LinearSums> sums_;
  std::unordered_map<ShardId, models::LinearSums::Kept> kept_;
  Epoch epoch_ = kNoEpoch;
  models::LinearPass pass_;
};

}  // namespace

Result<std::unique_ptr<TrainingLoop>> MakePassLoop(WorkerTasks& tasks, const Worker::Job& job) {
  ASSIGN_OR_RETURN(auto sums, models::LinearSums::Make(job.plan.model()));
  return std::unique_ptr<TrainingLoop>(std::make_unique<PassLoop>(tasks, job, std::move(sums)));
}

}  // namespace sluice::elastic
