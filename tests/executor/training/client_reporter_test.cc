#include "executor/training/client_reporter.h"

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

TEST(ClientReporter, TellsEverythingInOrderBeforeItFinishes) {
  RecordingSink sink;
  std::vector<std::string> told;
  sink.on_progress = [&] { told.push_back(std::to_string(sink.progress.back().rows_done)); };
  sink.on_notice = [&](const std::string& notice) { told.push_back(notice); };
  ClientReporter reporter(sink);
  reporter.Report(Rows(1));
  reporter.Notify("a lock");
  reporter.Report(Rows(2));
  reporter.Finish();
  EXPECT_EQ(told, (std::vector<std::string>{"1", "a lock", "2"}));
  reporter.Report(Rows(3));
  EXPECT_EQ(told.size(), 3U) << "the sink is somebody else's by now";
}

TEST(ClientReporter, AClientThatDoesNotReadHoldsUpNobodyAndMissesTheOldest) {
  constexpr int64_t kTold = 10'000;
  RecordingSink sink;
  std::promise<void> reads;
  sink.on_progress = [&] {
    if (sink.progress.size() == 1) {
      reads.get_future().wait();
    }
  };
  ClientReporter reporter(sink);
  for (int64_t done = 1; done <= kTold; ++done) {
    reporter.Report(Rows(done));
  }
  reads.set_value();
  reporter.Finish();
  EXPECT_EQ(sink.progress.back().rows_done, kTold);
  EXPECT_LT(sink.progress.size(), 1'000U);
}

}  // namespace
}  // namespace sluice::executor
