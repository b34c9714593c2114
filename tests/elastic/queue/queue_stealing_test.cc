// The sharding scenarios S8, S12 and S19 about late tasks, which other workers race or steal from.
#include <gtest/gtest.h>

#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

using Answer = TaskQueue::Answer;

// Three tasks took two seconds each; the fourth's holder is silent.
class Straggler : public ::testing::Test {
 protected:
  Straggler() : queue_(QueueOf(4)) {
    late_ = *queue_.Take(Incarnation(9), At(0));
    for (int i = 0; i < 3; ++i) {
      const Task task = *queue_.Take(Incarnation(1), At(2 * i));
      EXPECT_TRUE(queue_.Report(Incarnation(1), Trained(task, 10, 10), At(2 * i + 2)).ok());
      queue_.Renew(Incarnation(9), At(2 * i + 2));
    }
  }
  TaskQueue queue_;
  Task late_;
};

TEST_F(Straggler, S12_AStoppedWorkersTaskIsIssuedAgain) {
  const std::optional<Task> copy = queue_.Steal(Incarnation(1), At(6));
  ASSERT_TRUE(copy.has_value());
  EXPECT_EQ(copy->shard, late_.shard);
  EXPECT_EQ(copy->attempt, late_.attempt) << "a race: nobody is fenced before someone has won";
  EXPECT_FALSE(queue_.Steal(Incarnation(2), At(6)).has_value()) << "one copy is enough";
}

TEST_F(Straggler, S8_NobodyRacesATaskOnWhichCodeHasFailed) {
  queue_.ChargeFailure(Incarnation(7), late_.shard);
  EXPECT_FALSE(queue_.Steal(Incarnation(1), At(6)).has_value());
}

TEST_F(Straggler, S19_TheFirstAtTheEndHasFinishedTheTaskOnce) {
  const Task copy = *queue_.Steal(Incarnation(1), At(6));
  ASSERT_EQ(*queue_.Report(Incarnation(9), Trained(late_, 4, 10), At(7)), Answer::kAccepted);
  ASSERT_TRUE(queue_.Report(Incarnation(1), Trained(copy, 3, 10), At(7)).ok());
  EXPECT_EQ(queue_.totals().rows, 340) << "batches 0 to 3 count once";
  ASSERT_EQ(*queue_.Report(Incarnation(1), Trained(copy, 10, 10), At(8)), Answer::kAccepted);
  EXPECT_EQ(queue_.totals().rows, 400);
  EXPECT_TRUE(queue_.EpochDone());
  EXPECT_EQ(*queue_.Report(Incarnation(9), Trained(late_, 5, 10), At(9)), Answer::kRejected);
  EXPECT_EQ(queue_.totals().rows, 400);
  EXPECT_TRUE(queue_.CheckLedger().ok());
}

TEST_F(Straggler, S19_NotBeforeItIsLate) {
  TaskQueue queue(QueueOf(2));
  const Task slow = *queue.Take(Incarnation(9), At(0));
  const Task quick = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(quick, 10, 10), At(2)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(1), At(2.9)).has_value()) << "1.5 times the median is 3 s";
  EXPECT_TRUE(queue.Steal(Incarnation(1), At(3.1)).has_value());
  EXPECT_EQ(slow.shard, ShardId(0));
}

TEST(QueueStealing, S19_HalfOfWhatIsLeftIsStolen) {
  TaskQueue queue(QueueOf(1));
  const Task slow = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(slow, 20, 100), At(1)).ok());
  const std::optional<Task> stolen = queue.Steal(Incarnation(2), At(1));
  ASSERT_TRUE(stolen.has_value());
  EXPECT_EQ(stolen->shard, slow.shard);
  EXPECT_EQ(stolen->first_batch, BatchIndex(60));
  EXPECT_EQ(stolen->range, RangeId(60));
  EXPECT_EQ(stolen->last_batch, kToTheEnd);
  EXPECT_EQ(queue.LastBatch(slow.id), BatchIndex(60));
  // The holder went too far before it learnt of it: nothing of that report counts.
  EXPECT_EQ(*queue.Report(Incarnation(1), Trained(slow, 63, 100), At(2)), Answer::kCut);
  EXPECT_EQ(queue.totals().rows, 200);
  Task shorter = slow;
  shorter.last_batch = BatchIndex(60);
  EXPECT_EQ(*queue.Report(Incarnation(1), Trained(shorter, 60, 100), At(2)), Answer::kAccepted);
  EXPECT_FALSE(queue.EpochDone());
  EXPECT_EQ(*queue.Report(Incarnation(2), Trained(*stolen, 100, 100), At(3)), Answer::kAccepted);
  EXPECT_TRUE(queue.EpochDone());
  EXPECT_EQ(queue.RowsOfSnapshot(), 1000);
  EXPECT_TRUE(queue.CheckLedger().ok());
}

// Whoever reads its rows again is late for a shard that is trained in less time than that takes.
TEST(QueueStealing, S19_RowsThatTakeLongToReadAreNotReadAgain) {
  TaskQueue queue(QueueOf(2));
  const Task slow = *queue.Take(Incarnation(1), At(0)), quick = *queue.Take(Incarnation(2), At(0));
  const auto trained = [](const Task& task, int64_t upto) {
    TaskReport report = Trained(task, upto, 100);
    report.rows_read = 1000;
    report.read_seconds = 10;
    return report;
  };
  ASSERT_TRUE(queue.Report(Incarnation(2), trained(quick, 100), At(11)).ok());
  ASSERT_TRUE(queue.Report(Incarnation(1), trained(slow, 20), At(11)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(2), At(11)).has_value()) << "80 batches take 4 s";
  ASSERT_TRUE(queue.Report(Incarnation(1), trained(slow, 21), At(13)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(2), At(13)).has_value()) << "79 batches take 11 s";
  ASSERT_TRUE(queue.Report(Incarnation(1), trained(slow, 24), At(22)).ok());
  const std::optional<Task> stolen = queue.Steal(Incarnation(2), At(22));
  ASSERT_TRUE(stolen.has_value()) << "76 batches take 38 s";
  EXPECT_EQ(stolen->first_batch, BatchIndex(62));
}

TEST(QueueStealing, S19_AThiefThatDiesLeavesItsRestToOthers) {
  TaskQueue queue(QueueOf(1));
  const Task slow = *queue.Take(Incarnation(1), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(slow, 20, 100), At(1)).ok());
  const Task stolen = *queue.Steal(Incarnation(2), At(1));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(stolen, 70, 100), At(1.5)).ok());
  queue.ReleaseAll(Incarnation(2));
  const Task rest = *queue.Take(Incarnation(3), At(2));
  EXPECT_EQ(rest.range, RangeId(60));
  EXPECT_EQ(rest.first_batch, BatchIndex(70));
  EXPECT_EQ(rest.attempt, stolen.attempt + 1);
}

TEST(QueueStealing, S19_ALateLaneIsRacedNeverSplit) {
  TaskQueue::Options options = QueueOf(2);
  options.lanes = 2;
  TaskQueue queue(options);
  const Task first = *queue.Take(Incarnation(1), At(0)),
             second = *queue.Take(Incarnation(2), At(0));
  ASSERT_TRUE(queue.Report(Incarnation(2), Trained(second, 6, 10), At(1)).ok());
  ASSERT_TRUE(queue.Report(Incarnation(1), Trained(first, 5, 10), At(1)).ok());
  EXPECT_FALSE(queue.Steal(Incarnation(3), At(1.5)).has_value()) << "the step is not late";
  const Task copy = *queue.Steal(Incarnation(3), At(2.5));
  EXPECT_EQ(copy.lane, first.lane) << "the lane that the step waits for";
  EXPECT_EQ(copy.first_batch, BatchIndex(5));
  EXPECT_EQ(copy.last_batch, kToTheEnd);
}

// Its speed is measured by bench/queue_bench; a queue that searched through its holders would not
// finish this test.
// Batch i has loss i + 1. In whatever order the reports of two copies of a lane arrive, the sum is
// that of one.
TEST(QueueStealing, S19_TheLossOfARacedLaneIsThatOfOneWhoTrainsIt) {
  TaskQueue::Options options = QueueOf(2);
  options.lanes = 2;
  TaskQueue queue(options);
  const Task lane = *queue.Take(Incarnation(1), At(0)), other = *queue.Take(Incarnation(2), At(0));
  const auto report = [&](Incarnation worker, const Task& task, int64_t upto, double now) {
    TaskReport said = Trained(task, upto, 10);
    for (BatchIndex batch = task.first_batch; batch < BatchIndex(upto); ++batch) {
      said.loss += static_cast<double>(batch.index()) + 1;
      said.weight += 10;
    }
    ASSERT_TRUE(queue.Report(worker, said, At(now)).ok());
  };
  report(Incarnation(1), lane, 5, 1);
  report(Incarnation(2), other, 6, 1);
  const Task copy = *queue.Steal(Incarnation(3), At(2.5));
  ASSERT_EQ(copy.lane, lane.lane);
  report(Incarnation(3), copy, 8, 3);
  report(Incarnation(1), lane, 9, 4);
  report(Incarnation(3), copy, 10, 5);
  EXPECT_EQ(queue.totals().loss, 55 + 21);
  EXPECT_EQ(queue.totals().weight, 100 + 60);
}

}  // namespace
}  // namespace sluice::elastic
