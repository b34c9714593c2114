#include "executor/pods/snapshot_book.h"

#include <gtest/gtest.h>

#include <chrono>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "executor/pods/pod_job.h"
#include "tests/k8s/hand_clock.h"

namespace sluice::executor {
namespace {

class SnapshotBookTest : public ::testing::Test {
 protected:
  SnapshotBook OfTerm(int64_t term) { return {jobs(), clock_, {job_.id, term, "node1"}}; }
  catalog::JobStore& jobs() { return database_.catalog->jobs(); }
  void SetUp() override { job_.id = jobs().Create(job_).value(); }

  k8s::HandClock clock_;
  catalog::Database database_ = catalog::OpenDatabase("sqlite::memory:").value();
  catalog::Job job_;
};

TEST_F(SnapshotBookTest, OnlyAProcessOnAnotherNodeKeepsItElsewhereWhileItIsHeard) {
  SnapshotBook book = OfTerm(1);
  EXPECT_FALSE(book.KeptElsewhere());
  book.Hear("node1", "0-1", "");
  EXPECT_FALSE(book.KeptElsewhere());
  book.Hear("node2", "0-2", "");
  EXPECT_TRUE(book.KeptElsewhere());
  clock_.Advance(std::chrono::seconds(2));
  book.Hear("node2", "0-2", "");
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_TRUE(book.KeptElsewhere());
  clock_.Advance(std::chrono::seconds(2));
  EXPECT_FALSE(book.KeptElsewhere()) << "it may be gone";
  EXPECT_EQ(jobs().Records(job_.id, kSnapshotRecords)->size(), 2U);
}

TEST_F(SnapshotBookTest, ItIsHandedOverWhenALaterMasterKeepsIt) {
  SnapshotBook first = OfTerm(1);
  first.Keep("0-1", "");
  first.Hear("node1", "0-2", "");
  EXPECT_FALSE(first.HandedOver().value());
  SnapshotBook second = OfTerm(2);
  second.Hear("node2", "0-3", "");
  EXPECT_FALSE(first.HandedOver().value());
  second.Keep("0-4", "");
  EXPECT_TRUE(first.HandedOver().value());
  EXPECT_FALSE(second.HandedOver().value());
}

TEST_F(SnapshotBookTest, NobodyNeedsThatOfAJobThatHasEnded) {
  SnapshotBook book = OfTerm(1);
  book.Keep("0-1", "");
  job_.state = catalog::JobState::kFailed;
  ASSERT_TRUE(jobs().End(job_).ok());
  EXPECT_TRUE(book.HandedOver().value());
}

}  // namespace
}  // namespace sluice::executor
