#include "executor/client_teller.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "tests/support/recording_sink.h"

namespace sluice::executor {
namespace {

elastic::Progress Rows(int64_t done) {
  elastic::Progress progress;
  progress.rows_done = done;
  return progress;
}

TEST(ClientTeller, TellsEverythingInOrderBeforeItFinishes) {
  RecordingSink sink;
  std::vector<std::string> told;
  sink.on_progress = [&] { told.push_back(std::to_string(sink.progress.back().rows_done)); };
  sink.on_notice = [&](const std::string& notice) { told.push_back(notice); };
  ClientTeller teller(sink);
  teller.Tell(Rows(1));
  teller.Notify("a lock");
  teller.Tell(Rows(2));
  teller.Finish();
  EXPECT_EQ(told, (std::vector<std::string>{"1", "a lock", "2"}));
  teller.Tell(Rows(3));
  EXPECT_EQ(told.size(), 3U) << "the sink is somebody else's by now";
}

TEST(ClientTeller, AClientThatDoesNotReadHoldsUpNobodyAndMissesTheOldest) {
  constexpr int64_t kTold = 10'000;
  RecordingSink sink;
  std::promise<void> reads;
  sink.on_progress = [&] {
    if (sink.progress.size() == 1) {
      reads.get_future().wait();
    }
  };
  ClientTeller teller(sink);
  for (int64_t done = 1; done <= kTold; ++done) {
    teller.Tell(Rows(done));
  }
  reads.set_value();
  teller.Finish();
  EXPECT_EQ(sink.progress.back().rows_done, kTold);
  EXPECT_LT(sink.progress.size(), 1'000U);
}

}  // namespace
}  // namespace sluice::executor
