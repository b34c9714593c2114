#include <gmock/gmock.h>

#include "tests/process/pods_fixture.h"

// A master of a job on pods is refused by the job's journal.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;

// By an earlier one that was paused just before it began its term, and then ended.
TEST_F(Pods, AMasterWhoseJournalRefusesItLeavesTheJobToTheNextOne) {
  RecordingSink quiet;
  ASSERT_TRUE(Train("u", kSynchronous, quiet).ok());
  RecordingSink sink;
  Status status;
  std::string refused;
  {
    const std::jthread earlier([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
      const std::vector<std::string> masters = kubelet_->Running("master");
      if (stop.stop_requested() || masters.empty()) {
        return;
      }
      refused = masters.back();
      EXPECT_TRUE(catalog_->jobs().BeginTerm(2).ok());
    });
    status = Train("m", kSynchronous, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  ASSERT_NE(refused, "");
  EXPECT_THAT(kubelet_->LogOf(refused), HasSubstr("the job goes on with the next master"));
  EXPECT_EQ(kubelet_->Started("master").size(), 1U + 2U);
  EXPECT_EQ(Count(2, "master_took_over"), 1) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "worker_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "server_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, "snapshot_lost"), 0) << ::testing::PrintToString(Events(2));
  EXPECT_EQ(catalog_->jobs().Find(2)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(catalog_->jobs().Find(2)->rows_trained, 12 * kRowsTrained);
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 1U);
  ExpectNothingLeft();
  EXPECT_EQ(Sha("m"), Sha("u"));
}

}  // namespace
}  // namespace sluice::executor
