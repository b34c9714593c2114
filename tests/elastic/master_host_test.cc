#include "elastic/master_host.h"

#include <gtest/gtest.h>

#include "tests/elastic/memory_journal.h"
#include "tests/elastic/queue_steps.h"

namespace sluice::elastic {
namespace {

class MasterHostTest : public ::testing::Test {
 protected:
  MasterHostTest() {
    options_.queue = QueueOf(3);
    options_.queue.journal = true;
    options_.workers = 1;
  }
  std::unique_ptr<MasterHost> Host(Master master, int64_t term) {
    return std::make_unique<MasterHost>(
        std::move(master), &journal_, term,
        [this](const Master::Action& action) {
          actions_.push_back(action);
          return Status();
        },
        progress_, events_);
  }
  Master::Options options_;
  MemoryJournal journal_;
  ProgressCallback progress_;
  EventCallback events_;
  std::vector<Master::Action> actions_;
};

TEST_F(MasterHostTest, ASecondOneGoesOnAndTheFirstStops) {  // S23
  const auto first = Host(Master(options_, kTimeZero), *journal_.BeginTerm());
  first->Start();
  first->Pump();
  ASSERT_EQ(actions_.size(), 1U);
  const Incarnation worker = actions_[0].incarnation;
  const Task task = first->Take(worker, true, {}, 0)->task;
  ASSERT_TRUE(first->Report(worker, Done(task, 2, 20)).ok());
  ASSERT_TRUE(first->Save().ok());

  const int64_t term = *journal_.BeginTerm();
  Result<std::unique_ptr<Master>> taken =
      Master::TakeOver(options_, term, *journal_.ReadAll(), {actions_[0].name}, kTimeZero);
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  const auto second = Host(std::move(**taken), term);
  ASSERT_TRUE(first->Take(worker, true, {}, 0).ok());
  EXPECT_FALSE(first->Save().ok());
  EXPECT_TRUE(first->finished()) << "its journal belongs to the second one";
  EXPECT_EQ(first->result().code(), Code::kAborted);
  for (int i = 0; i < 2; ++i) {
    const Task rest = second->Take(worker, true, {}, 0)->task;
    EXPECT_NE(rest.shard, task.shard) << "what is done stays done";
    ASSERT_TRUE(second->Report(worker, Done(rest, 2, 20)).ok());
  }
  second->Pump();
  EXPECT_TRUE(second->finished());
  EXPECT_TRUE(second->result().ok()) << second->result().ToString();
  EXPECT_EQ(second->Outcome().rows_trained, 60);
  EXPECT_EQ(actions_.size(), 1U) << "the living worker is not replaced";
}

TEST_F(MasterHostTest, NothingIsDoneThatIsNotInTheJournal) {
  const auto host = Host(Master(options_, kTimeZero), *journal_.BeginTerm());
  ASSERT_TRUE(journal_.BeginTerm().ok());
  host->Start();
  host->Pump();
  EXPECT_TRUE(actions_.empty());
  EXPECT_TRUE(host->finished());
}

}  // namespace
}  // namespace sluice::elastic
