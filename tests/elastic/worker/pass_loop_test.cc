#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>

#include "catalog/dataset.pb.h"
#include "elastic/queue/task.h"
#include "elastic/worker/worker.h"
#include "models/trees/histogram/tree_pass.pb.h"
#include "tests/elastic/job/trees_plan.h"

// A worker's part in a model that is found by passes.
namespace sluice::elastic {
namespace {

// Hands out its tasks one by one.
class ScriptedMaster final : public MasterLink {
 public:
  Result<Answer> Take(bool) override {
    if (tasks.empty()) {
      return Answer{Answer::Kind::kFinished, {}};
    }
    Answer answer{Answer::Kind::kTask, tasks.front()};
    tasks.pop_front();
    return answer;
  }
  Result<LeaseStatus> Report(const TaskReport& report) override {
    sums[report.task] = report.sums;
    return LeaseStatus();
  }
  Result<bool> MayBegin(int64_t) override { return true; }
  Status Fail(const Task&, const Status& cause) override { return cause; }
  void Abandon(TaskId) override {}
  void Leave() override {}

  std::deque<Task> tasks;
  std::map<TaskId, std::string> sums;
};

class PassLoopTest : public ::testing::Test {
 protected:
  static constexpr int64_t kShardRows = 100;

  TaskId Give(Term term, int64_t nth) {
    Task task;
    task.id = TaskId(FirstTaskOf(term).value() + nth);
    task.shard = ShardId(nth);
    task.epoch = Epoch::First();
    master_.tasks.push_back(task);
    return task.id;
  }
  // `passes`: what the masters request one after the other.
  void Work(std::deque<std::string> passes) {
    Worker::Job job{plan_, *source_, spec_};
    job.pass = [&passes](Epoch, bool) -> Result<std::string> {
      if (passes.empty()) {
        return Internal("one more pass was asked for");
      }
      std::string pass = passes.front();
      passes.pop_front();
      return pass;
    };
    const Status status = Worker::Make(job, master_, nullptr).value()->Run({});
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(passes.empty());
  }
  static std::string Asks(models::histogram::TreePass::Question question) {
    models::histogram::TreePass pass;
    pass.set_question(question);
    return pass.SerializeAsString();
  }

  const plan::TrainPlan plan_ = TreesPlan(1, 1);
  const std::unique_ptr<testing::MemorySource> source_ = SmallSource(2 * kShardRows);
  const catalog::DatasetSpec spec_ = source_->Spec(kShardRows);
  ScriptedMaster master_;
};

TEST_F(PassLoopTest, APassIsFetchedOnceForAllItsShards) {
  const TaskId first = Give(Term::First(), 0), second = Give(Term::First(), 1);
  Work({Asks(models::histogram::TreePass::COUNT)});
  EXPECT_FALSE(master_.sums[first].empty());
  EXPECT_FALSE(master_.sums[second].empty());
}

// Its sums would be those of what the master before it has asked.
TEST_F(PassLoopTest, ANewMastersPassOfTheSameNumberIsAnotherOne) {
  Give(Term::First(), 0);
  const TaskId second = Give(Term::At(1), 0);
  const std::string count = Asks(models::histogram::TreePass::COUNT);
  Work({count, count});
  EXPECT_FALSE(master_.sums[second].empty());
}

}  // namespace
}  // namespace sluice::elastic
