// A contest's candidates are run two at a time.
#include "executor/contest/contest_lanes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::executor {
namespace {

using ::testing::ElementsAre;

struct Done {
  std::mutex mutex;
  std::vector<LaneTurn> turns;
  void Note(const LaneTurn& turn) {
    const std::lock_guard<std::mutex> lock(mutex);
    turns.push_back(turn);
  }
  std::vector<size_t> Items() const {
    std::vector<size_t> items;
    std::transform(turns.begin(), turns.end(), std::back_inserter(items),
                   [](const LaneTurn& turn) { return turn.item; });
    return items;
  }
};

TEST(ContestLanes, EverythingIsDoneOnce) {
  for (const auto& [parallel, single] :
       std::vector<std::pair<std::vector<size_t>, std::vector<size_t>>>{
           {{}, {}}, {{3}, {}}, {{}, {3}}, {{}, {0, 3}}, {{0, 3}, {1, 2, 4}}}) {
    Done done;
    RunLanes(parallel, single, [&](const LaneTurn& turn) { done.Note(turn); });
    std::vector<size_t> all = parallel;
    all.insert(all.end(), single.begin(), single.end());
    EXPECT_THAT(done.Items(), ::testing::UnorderedElementsAreArray(all));
    EXPECT_EQ(std::count_if(done.turns.begin(), done.turns.end(),
                            [](const LaneTurn& turn) { return turn.first; }),
              all.empty() ? 0 : 1);
  }
}

TEST(ContestLanes, WhoeverIsDoneHelpsWithWhatTakesOneProcessor) {
  if (std::thread::hardware_concurrency() < 2) {
    GTEST_SKIP() << "one at a time here";
  }
  // The first network does not end before another thread has done all other work.
  Done done;
  std::mutex mutex;
  std::condition_variable changed;
  size_t ended = 0;
  RunLanes({10, 11}, {0, 1, 2}, [&](const LaneTurn& turn) {
    done.Note(turn);
    std::unique_lock<std::mutex> lock(mutex);
    if (turn.item == 0) {
      changed.wait(lock, [&] { return ended == 4; });
    }
    ++ended;
    changed.notify_all();
  });
  EXPECT_EQ(ended, 5U);
  std::vector<size_t> others = done.Items();
  std::erase(others, 0);
  EXPECT_THAT(others, ElementsAre(10, 11, 1, 2));
  const auto share = [&](size_t item) {
    return std::find_if(done.turns.begin(), done.turns.end(),
                        [item](const LaneTurn& turn) { return turn.item == item; })
        ->share;
  };
  EXPECT_EQ(share(10), 1.0 / 2);
  EXPECT_EQ(share(11), 1);
  EXPECT_EQ(share(1), 1) << "two are left, for two threads";
}

}  // namespace
}  // namespace sluice::executor
