#include "tests/elastic/master/master_steps.h"

namespace sluice::elastic {
namespace {

// A job whose workers report their shards together.
class MasterPasses : public MasterTest {
 protected:
  MasterPasses() {
    options_.passes = options_.merges = true;
    options_.queue.shards = 8;
    options_.queue.epochs = 100;
  }
  std::vector<Task> TakeAll(Incarnation worker, double now = 1) {
    const Result<MasterLink::Answer> answer = master_->Take(worker, true, {}, At(now));
    std::vector<Task> tasks;
    if (answer.ok() && answer->kind == MasterLink::Answer::Kind::kTask) {
      tasks = answer->further;
      tasks.push_back(answer->task);
    }
    return tasks;
  }
  static TaskReport Together(const std::vector<Task>& tasks, const std::string& sums) {
    TaskReport all = Done(tasks.front());
    all.sums = sums;
    for (size_t i = 1; i < tasks.size(); ++i) {
      all.merged.push_back(Done(tasks[i]));
    }
    return all;
  }
  void FinishPass() {
    for (bool more = true; more;) {
      more = false;
      for (const size_t worker : {0, 1}) {
        const std::vector<Task> tasks = TakeAll(Worker(worker));
        if (!tasks.empty()) {
          ASSERT_TRUE(master_->Report(Worker(worker), Together(tasks, "s"), At(1))->mine);
          more = true;
        }
      }
    }
  }
};

TEST_F(MasterPasses, EachShardCountsOnceAndStaysWithItsWorker) {
  Start();
  FinishPass();
  EXPECT_EQ(master_->queue().totals().rows, 800);
  master_->passes().Take();
  master_->NextPass(At(2));
  // The second worker came when the first had begun with four: it has two.
  const std::vector<Task> first = TakeAll(Worker(0), 2), second = TakeAll(Worker(1), 2);
  EXPECT_EQ(first.size(), 4U) << "its equal share of six";
  EXPECT_EQ(second.size(), 2U);
  EXPECT_TRUE(master_->Report(Worker(0), Together(first, "a"), At(2))->mine);
  EXPECT_TRUE(master_->Report(Worker(0), Together(first, "a"), At(2))->mine) << "repeated";
  EXPECT_TRUE(master_->Report(Worker(1), Together(second, "b"), At(2))->mine);
  for (const char* sums : {"c", "d"}) {
    const std::vector<Task> another = TakeAll(Worker(1), 2);
    ASSERT_EQ(another.size(), 1U);
    EXPECT_TRUE(master_->Report(Worker(1), Together(another, sums), At(2))->mine);
  }
  EXPECT_EQ(master_->passes().Take().size(), 4U);
  EXPECT_EQ(master_->queue().totals().rows, 1'600);
  master_->NextPass(At(3));
  EXPECT_EQ(TakeAll(Worker(0), 3).size(), 4U);
  EXPECT_EQ(TakeAll(Worker(1), 3).size(), 4U);
}

TEST_F(MasterPasses, SumsOfAShardThatAnotherWorkerHasNowCountWithNoneOfTheirs) {
  Start();
  FinishPass();
  master_->passes().Take();
  master_->NextPass(At(2));
  const std::vector<Task> first = TakeAll(Worker(0), 2);
  ASSERT_GE(first.size(), 2U);
  // The answer that carried one of the tasks is lost: the worker asks again without it.
  const std::vector<TaskId> held = {first.front().id};
  ASSERT_TRUE(master_->Take(Worker(0), true, held, At(2)).ok());
  EXPECT_FALSE(master_->Report(Worker(0), Together(first, "a"), At(2))->mine);
  EXPECT_TRUE(master_->passes().Take().empty());
  FinishPass();
  EXPECT_EQ(master_->queue().totals().rows, 1'600);
}

TEST_F(MasterPasses, AMasterThatTakesOverKnowsWhatTheSearchHasRemembered) {
  Start();
  master_->Remember("start", At(1));
  std::vector<std::string> journal = {master_->TakeJournal().value()};
  master_->Remember("round 1", At(2));
  journal.push_back(master_->TakeJournal().value());
  EXPECT_EQ(master_->TakeJournal().value(), "");
  const auto next = Master::TakeOver(options_, Term(2), journal, {}, At(3));
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  EXPECT_EQ((*next)->remembered(), (std::vector<std::string>{"start", "round 1"}));
  (*next)->BeginPassesAgain(At(3));
  bool anew = false;
  const std::string whole = (*next)->TakeJournal(&anew).value();
  EXPECT_TRUE(anew);
  const auto third = Master::TakeOver(options_, Term(3), {whole}, {}, At(4));
  ASSERT_TRUE(third.ok()) << third.status().ToString();
  EXPECT_EQ((*third)->remembered().size(), 2U);
}

// The last master was lost between two passes: the next one's first pass has not been made.
TEST_F(MasterPasses, AMasterThatTakesOverBetweenTwoPassesHasNoSums) {
  Start();
  FinishPass();
  const std::vector<std::string> journal = {master_->TakeJournal().value()};
  const auto next = Master::TakeOver(options_, Term(2), journal, {}, At(3));
  ASSERT_TRUE(next.ok()) << next.status().ToString();
  (*next)->BeginPassesAgain(At(3));
  for (const Master::Action& action : (*next)->outbox().TakeActions()) {
    EXPECT_NE(action.kind, Master::Action::Kind::kPassDone);
  }
}

}  // namespace
}  // namespace sluice::elastic
