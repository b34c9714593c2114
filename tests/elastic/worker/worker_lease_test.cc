#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "catalog/dataset.pb.h"
#include "elastic/job/direct_links.h"
#include "elastic/worker/worker.h"
#include "tests/elastic/job/small_job.h"

// What a worker does when one of its tasks has been given to another: both the master and the
// servers refuse it, and the shard is not charged with a failure.
namespace sluice::elastic {
namespace {

constexpr int64_t kShardRows = 4'000, kBatch = 10;

// Hands out its tasks one by one, and refuses reports on those that it has taken back.
class ScriptedMaster final : public MasterLink {
 public:
  Result<Answer> Take(bool waiting) override {
    if (tasks.empty()) {
      return Answer{waiting ? Answer::Kind::kFinished : Answer::Kind::kNothing, {}};
    }
    Answer answer{Answer::Kind::kTask, tasks.front()};
    tasks.pop_front();
    return answer;
  }
  Result<LeaseStatus> Report(const TaskReport& report) override {
    reports[report.task] = report;
    while_reading[report.task] += report.rows_read > 0 && report.batches == 0 ? 1 : 0;
    return LeaseStatus{.mine = report.task != taken_back};
  }
  Result<bool> MayBegin(int64_t) override { return true; }
  Status Fail(const Task&, const Status& cause) override {
    failures.push_back(cause);
    return Status();
  }
  void Abandon(TaskId task) override { abandoned.push_back(task); }
  void Leave() override {}

  std::deque<Task> tasks;
  TaskId taken_back = kNoTask;
  std::map<TaskId, TaskReport> reports;
  std::map<TaskId, int> while_reading;  // reports
  std::vector<Status> failures;
  std::vector<TaskId> abandoned;
};

// Counts pushes; refuses those of one shard from some batch on.
class FencedParameters final : public ParameterLink {
 public:
  explicit FencedParameters(ParameterLink& link) : link_(link) {}
  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override {
    if (pulls_are_refused && pulls_are_refused()) {
      return Status(Code::kAborted, "shard belongs to another worker now");
    }
    return link_.Pull(batch, purpose, view);
  }
  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    if (batch.shard == fenced_shard && batch.batch >= fenced_from) {
      return Status(Code::kAborted, "shard belongs to another worker now");
    }
    ++pushes[batch.shard];
    if (on_push) {
      on_push(batch);
    }
    return link_.Push(batch, weight, view, gradient);
  }
  Status PushEnd(const BatchIdentity& batch) override { return link_.PushEnd(batch); }
  std::vector<int64_t> Versions() const override { return link_.Versions(); }
  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override {
    return link_.AppliedBatches(epoch, shard);
  }

  std::function<bool()> pulls_are_refused;
  ShardId fenced_shard{-1};
  BatchIndex fenced_from;
  std::map<ShardId, int64_t> pushes;
  std::function<void(const BatchIdentity&)> on_push;

 private:
  ParameterLink& link_;
};

class WorkerLease : public ::testing::Test {
 protected:
  WorkerLease() {
    for (int64_t shard = 0; shard < 2; ++shard) {
      Task task;
      task.id = TaskId(shard + 1);
      task.shard = ShardId(shard);
      master_.tasks.push_back(task);
    }
  }
  Status Work(std::stop_token stop = {}) {
    const Worker::Job job{plan_, *source_, spec_};
    return Worker::Make(job, master_, &parameters_).value()->Run(std::move(stop));
  }

  static plan::TrainPlan Plan() {
    plan::TrainPlan plan = SmallPlan(1, kBatch);
    plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
    plan.mutable_split()->set_kind(plan::Split::NONE);
    return plan;
  }
  const plan::TrainPlan plan_ = Plan();
  const std::unique_ptr<testing::MemorySource> source_ = SmallSource(2 * kShardRows);
  catalog::DatasetSpec spec_ = source_->Spec(kShardRows);
  const std::unique_ptr<models::Network> network_ = models::Network::Make(plan_.model()).value();
  const std::unique_ptr<ParameterShard> shard_ =
      ParameterShard::Make(plan_.model(), *network_, {}, nullptr).value();
  DirectParameterLink direct_{*shard_, *network_};
  FencedParameters parameters_{direct_};
  ScriptedMaster master_;
};

TEST_F(WorkerLease, S9_AServersRefusalEndsItsLease) {
  parameters_.fenced_shard = ShardId(0);
  parameters_.fenced_from = BatchIndex(5);
  const Status status = Work();
  EXPECT_TRUE(status.ok()) << status.ToString();  // it survives, and does the other task
  EXPECT_TRUE(master_.failures.empty()) << master_.failures.front().ToString();
  EXPECT_EQ(parameters_.pushes[ShardId(0)], 5);
  EXPECT_EQ(parameters_.pushes[ShardId(1)], kShardRows / kBatch);
  EXPECT_EQ(master_.abandoned, std::vector<TaskId>{TaskId(1)});
  EXPECT_TRUE(master_.reports[TaskId(2)].done);
}

// Its first report comes with its first batch; after the answer it pushes nothing more from the
// shard.
TEST_F(WorkerLease, S12_TheMastersRefusalEndsItsLease) {
  master_.taken_back = TaskId(1);
  const Status status = Work();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(master_.failures.empty());
  EXPECT_LT(parameters_.pushes[ShardId(0)], kShardRows / kBatch);
  EXPECT_FALSE(master_.reports[TaskId(1)].done);
  EXPECT_EQ(parameters_.pushes[ShardId(1)], kShardRows / kBatch);
}

// Otherwise a slow database costs the lease, and another worker reads the rows again.
TEST_F(WorkerLease, AShardIsReportedWhileItIsRead) {
  spec_.mutable_shards(0)->set_end(50 * kBatch);  // none of the next one is read meanwhile
  source_->OnRead([] { std::this_thread::sleep_for(std::chrono::milliseconds(150)); });
  const Status status = Work();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_GE(master_.while_reading[TaskId(2)], 2);
  EXPECT_TRUE(master_.reports[TaskId(2)].done);
}

TEST_F(WorkerLease, ALeaseLostWhileItsShardIsReadIsLeftAlone) {
  spec_.mutable_shards(0)->set_end(50 * kBatch);
  master_.taken_back = TaskId(2);
  source_->OnRead([] { std::this_thread::sleep_for(std::chrono::milliseconds(150)); });
  const Status status = Work();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(master_.while_reading[TaskId(2)], 1);
  EXPECT_EQ(parameters_.pushes[ShardId(1)], 0);
}

// In the exchange in which reading the next shard has failed, this one is lost: the error counts.
TEST_F(WorkerLease, AFailedReadAheadIsNotForgottenWithALostShard) {
  source_->FailReads(kShardRows, 1, InvalidArgument("damaged"));
  parameters_.pulls_are_refused = [this] { return !master_.failures.empty(); };
  EXPECT_EQ(Work().message(), "damaged");
  EXPECT_EQ(master_.failures.size(), 1U);
  EXPECT_EQ(master_.abandoned, std::vector<TaskId>{TaskId(1)});
}

// Whoever took the rest would have to read all of the shard again.
TEST_F(WorkerLease, AShardThatIsAllButTrainedIsFinishedBeforeTheWorkerLeaves) {
  std::stop_source stop;
  parameters_.on_push = [&stop](const BatchIdentity& batch) {
    if (batch.batch == BatchIndex(kShardRows / kBatch - 3)) {
      stop.request_stop();
    }
  };
  EXPECT_EQ(Work(stop.get_token()).code(), Code::kCancelled);
  EXPECT_EQ(parameters_.pushes[ShardId(0)], kShardRows / kBatch);
  EXPECT_TRUE(master_.reports[TaskId(1)].done);
  EXPECT_EQ(parameters_.pushes[ShardId(1)], 0) << "the next one has not begun";
  EXPECT_TRUE(master_.failures.empty());
}

TEST_F(WorkerLease, AShardWhoseRestTakesLongIsLeftAtOnce) {
  std::stop_source stop;
  parameters_.on_push = [&stop](const BatchIdentity& batch) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // of 380 batches: for seconds
    if (batch.batch == BatchIndex(20)) {
      stop.request_stop();
    }
  };
  EXPECT_EQ(Work(stop.get_token()).code(), Code::kCancelled);
  EXPECT_EQ(parameters_.pushes[ShardId(0)], 21);
  EXPECT_FALSE(master_.reports[TaskId(1)].done);
  EXPECT_TRUE(master_.failures.empty());
}

}  // namespace
}  // namespace sluice::elastic
