#include "elastic/parameters/batch_window.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace sluice::elastic {
namespace {

using Verdict = BatchWindow::Verdict;

constexpr int64_t kNoEnd = 0;

Verdict Push(BatchWindow* window, int64_t batch, uint32_t attempt, int64_t range = 0,
             int64_t batches = kNoEnd) {
  const Verdict verdict =
      window->Check(Epoch(1), ShardId(0), BatchIndex(batch), Attempt(attempt), RangeId(range));
  if (verdict == Verdict::kNew) {
    window->Applied(Epoch(1), ShardId(0), BatchIndex(batch), batch + 1 == batches);
  }
  return verdict;
}

TEST(BatchWindow, EachBatchOnceInOrderFromTheNewestHolder) {
  BatchWindow window;
  EXPECT_EQ(Push(&window, 0, 1), Verdict::kNew);
  EXPECT_EQ(Push(&window, 0, 1), Verdict::kApplied);
  EXPECT_EQ(Push(&window, 2, 1), Verdict::kGap);
  EXPECT_EQ(Push(&window, 1, 2), Verdict::kNew);
  EXPECT_EQ(Push(&window, 2, 1), Verdict::kFenced);
  EXPECT_EQ(window.AppliedBatches(Epoch(1), ShardId(0)), BatchIndex(2));
}

TEST(BatchWindow, AnEpochThatIsOverHasEverything) {
  BatchWindow window;
  EXPECT_EQ(window.Check(Epoch(2), ShardId(0), BatchIndex(0), Attempt(1)), Verdict::kNew);
  window.Applied(Epoch(2), ShardId(0), BatchIndex(0));
  EXPECT_EQ(window.Check(Epoch(1), ShardId(0), BatchIndex(7), Attempt(1)), Verdict::kApplied);
  EXPECT_EQ(window.AppliedBatches(Epoch(1), ShardId(3)), kToTheEnd);
  EXPECT_EQ(window.AppliedBatches(Epoch(3), ShardId(0)), BatchIndex(0));
}

TEST(BatchWindow, AHolderThatRunsOnIntoAStolenRangeDoublesNothing) {
  BatchWindow window;
  for (int64_t batch = 0; batch < 6; ++batch) {
    EXPECT_EQ(Push(&window, batch, 1), Verdict::kNew);  // 4 and 5 were stolen already
  }
  EXPECT_EQ(Push(&window, 4, 1, 4), Verdict::kApplied);
  EXPECT_EQ(Push(&window, 5, 1, 4), Verdict::kApplied);
  EXPECT_EQ(Push(&window, 6, 1, 4), Verdict::kNew);
  EXPECT_EQ(Push(&window, 6, 1, 0), Verdict::kApplied);
  EXPECT_EQ(Push(&window, 7, 1, 0), Verdict::kNew) << "whoever comes first";
  EXPECT_EQ(Push(&window, 7, 1, 4), Verdict::kApplied);
}

TEST(BatchWindow, RangesAreFencedEachOnItsOwn) {
  BatchWindow window;
  EXPECT_EQ(Push(&window, 0, 3), Verdict::kNew);
  EXPECT_EQ(Push(&window, 10, 1, 10), Verdict::kNew);
  EXPECT_EQ(Push(&window, 11, 2, 10), Verdict::kNew);
  EXPECT_EQ(Push(&window, 12, 1, 10), Verdict::kFenced);
  EXPECT_EQ(Push(&window, 1, 3), Verdict::kNew);
  EXPECT_EQ(window.AppliedBatches(Epoch(1), ShardId(0)), BatchIndex(2));
  EXPECT_EQ(window.AppliedBatches(Epoch(1), ShardId(0), RangeId(10)), BatchIndex(12));
}

TEST(BatchWindow, OfAFinishedShardABitStays) {
  BatchWindow window;
  for (ShardId shard; shard < ShardId(1000); ++shard) {
    for (const BatchIndex batch : {BatchIndex(0), BatchIndex(1)}) {
      EXPECT_EQ(window.Check(Epoch(1), shard, batch, Attempt(1)), Verdict::kNew);
      window.Applied(Epoch(1), shard, batch, batch == BatchIndex(1));
    }
  }
  EXPECT_TRUE(window.Save().empty());
  BatchWindow copy;
  copy.Restore(window.epoch(), window.Save(), window.finished());
  for (ShardId shard; shard < ShardId(1000); ++shard) {
    EXPECT_EQ(copy.Check(Epoch(1), shard, BatchIndex(1), Attempt(2)), Verdict::kApplied);
    EXPECT_EQ(copy.AppliedBatches(Epoch(1), shard), kToTheEnd);
  }
  EXPECT_EQ(copy.Check(Epoch(1), ShardId(1000), BatchIndex(0), Attempt(1)), Verdict::kNew);
  EXPECT_EQ(copy.Check(Epoch(2), ShardId(0), BatchIndex(0), Attempt(1)), Verdict::kNew)
      << "of another epoch";
}

TEST(BatchWindow, TheEndOfAStolenRangeIsNotThatOfTheShard) {
  BatchWindow window;
  EXPECT_EQ(Push(&window, 4, 1, 4, 5), Verdict::kNew) << "before the shard's first holder";
  for (int64_t batch = 0; batch < 4; ++batch) {
    EXPECT_EQ(Push(&window, batch, 1, 0, 5), Verdict::kNew);
  }
  EXPECT_EQ(Push(&window, 4, 1, 0, 5), Verdict::kApplied);
}

TEST(BatchWindow, RandomSplitsAndRacesApplyEachBatchOnce) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    BatchWindow window;
    constexpr int64_t kBatches = 40;
    struct Pusher {
      int64_t range, next, end;
    };
    std::vector<Pusher> pushers{{0, 0, kBatches}};
    std::multiset<int64_t> applied;
    while (!pushers.empty()) {
      const size_t i = random() % pushers.size();
      Pusher& pusher = pushers[i];
      if (pusher.next >= pusher.end) {
        pushers.erase(pushers.begin() + static_cast<std::ptrdiff_t>(i));
        continue;
      }
      if (random() % 8 == 0 && pusher.end - pusher.next >= 4) {
        // Half of it goes to another worker; the holder learns of it later, or never.
        const int64_t middle = pusher.next + (pusher.end - pusher.next) / 2;
        const Pusher thief{middle, middle, pusher.end};
        if (random() % 2 == 0) {
          pusher.end = middle;
        }
        pushers.push_back(thief);
        continue;
      }
      const int64_t batch = pusher.next++;
      const Verdict verdict = Push(&window, batch, 1, pusher.range, kBatches);
      ASSERT_TRUE(verdict == Verdict::kNew || verdict == Verdict::kApplied)
          << "seed " << seed << " batch " << batch << " verdict " << static_cast<int>(verdict);
      if (verdict == Verdict::kNew) {
        applied.insert(batch);
      }
      if (random() % 16 == 0) {
        BatchWindow copy;
        copy.Restore(window.epoch(), window.Save(), window.finished());
        window = copy;
      }
    }
    for (int64_t batch = 0; batch < kBatches; ++batch) {
      EXPECT_EQ(applied.count(batch), 1U) << "seed " << seed << " batch " << batch;
    }
  }
}

}  // namespace
}  // namespace sluice::elastic
