#include "elastic/master/journal_writer.h"

#include <gtest/gtest.h>

#include "elastic/master/journal.pb.h"
#include "tests/elastic/queue/queue_steps.h"

namespace sluice::elastic {
namespace {

class JournalWriterTest : public ::testing::Test {
 protected:
  static TaskQueue::Options Options() {
    TaskQueue::Options options = QueueOf(4);
    options.journal = true;
    return options;
  }
  std::string Write(bool* anew = nullptr) {
    return writer_.Write(queue_.TakeJournal(), queue_, state_, anew).value();
  }
  static JournalEntry Read(const std::string& bytes) {
    JournalEntry entry;
    EXPECT_TRUE(entry.ParseFromString(bytes));
    return entry;
  }

  JournalWriter writer_;
  TaskQueue queue_{Options()};
  MasterSave state_;
};

TEST_F(JournalWriterTest, TheFirstEntryHasEverythingAndLaterOnesOnlyWhatHasChanged) {
  state_.set_started(2);
  bool anew = false;
  const JournalEntry first = Read(Write(&anew));
  EXPECT_TRUE(anew);
  EXPECT_TRUE(first.has_everything());
  EXPECT_TRUE(first.has_state());
  EXPECT_TRUE(first.has_placement());
  EXPECT_EQ(Write(), "") << "nothing has changed";

  ASSERT_TRUE(queue_.Take(Incarnation(1), kTimeZero).has_value());
  const JournalEntry second = Read(Write(&anew));
  EXPECT_FALSE(anew);
  EXPECT_FALSE(second.has_everything());
  EXPECT_EQ(second.transitions_size(), 1);
  EXPECT_FALSE(second.has_state());
  EXPECT_FALSE(second.has_placement());

  state_.set_started(3);
  const JournalEntry third = Read(Write());
  EXPECT_EQ(third.transitions_size(), 0);
  EXPECT_EQ(third.state().started(), 3);
}

TEST_F(JournalWriterTest, APlacementIsWrittenWhenItChanges) {
  state_.set_started(1);
  Write();
  Placement placement;
  placement.wanted = 3;
  writer_.SetPlacement(placement);
  const JournalEntry entry = Read(Write());
  EXPECT_EQ(entry.placement().wanted(), 3U);
  EXPECT_FALSE(entry.has_state());
  writer_.SetPlacement(placement);
  EXPECT_EQ(Write(), "") << "it is the same";
}

TEST_F(JournalWriterTest, AfterManyTransitionsAnEntryHasEverything) {
  state_.set_started(1);
  Write();
  bool anew = true;
  const std::vector<QueueRecord> many(JournalWriter::kMaxTransitions);
  ASSERT_TRUE(writer_.Write(many, queue_, state_, &anew).ok());
  EXPECT_FALSE(anew);
  const std::vector<QueueRecord> one(1);
  const JournalEntry entry = Read(writer_.Write(one, queue_, state_, &anew).value());
  EXPECT_TRUE(anew);
  EXPECT_TRUE(entry.has_everything());
  EXPECT_TRUE(entry.has_state());
  EXPECT_EQ(entry.transitions_size(), 0);
  EXPECT_FALSE(Read(writer_.Write(one, queue_, state_, &anew).value()).has_everything());
}

TEST_F(JournalWriterTest, AQueueThatWasReplacedIsWrittenWhole) {
  state_.set_started(1);
  Write();
  queue_ = TaskQueue(Options());
  writer_.StartOver();
  bool anew = false;
  EXPECT_TRUE(Read(Write(&anew)).has_everything());
  EXPECT_TRUE(anew);
}

TEST_F(JournalWriterTest, AReplayRestoresQueueStateAndPlacement) {
  state_.set_started(1);
  Placement placement;
  placement.wanted = 5;
  writer_.SetPlacement(placement);
  std::vector<std::string> entries = {Write()};
  const Task task = *queue_.Take(Incarnation(1), kTimeZero);
  entries.push_back(Write());
  state_.set_started(2);
  ASSERT_TRUE(queue_.Report(Incarnation(1), Done(task, 3, 30), kTimeZero).ok());
  entries.push_back(Write());

  JournalWriter next;
  TaskQueue queue(Options());
  MasterSave state;
  const Result<bool> has_state = next.Replay(Options(), entries, kTimeZero, &queue, &state);
  ASSERT_TRUE(has_state.ok()) << has_state.status().ToString();
  EXPECT_TRUE(*has_state);
  EXPECT_EQ(state.started(), 2);
  EXPECT_EQ(next.placement(), placement);
  EXPECT_EQ(queue.totals().rows, 30);
  EXPECT_EQ(queue.shards_done(), 1);

  EXPECT_FALSE(*JournalWriter().Replay(Options(), {}, kTimeZero, &queue, &state));
  EXPECT_FALSE(next.Replay(Options(), {"\x01\x02"}, kTimeZero, &queue, &state).ok());
}

}  // namespace
}  // namespace sluice::elastic
