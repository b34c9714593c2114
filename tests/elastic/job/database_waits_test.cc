#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "catalog/dataset.pb.h"
#include "catalog/sql/sqlstate.h"
#include "elastic/job/local_job.h"
#include "elastic/master/master_host.h"
#include "tests/elastic/job/small_job.h"
#include "tests/elastic/master/master_steps.h"
#include "tests/elastic/master/memory_journal.h"

// An unreachable, locked or full database is not an error of the job.
namespace sluice::elastic {
namespace {

using ::testing::HasSubstr;

Status Locked() {
  return catalog::DatabaseError("55P03", "canceling statement due to lock timeout")
      .Detail("session 7 waits for AccessExclusiveLock on t: DROP TABLE t");
}
Status Full() {
  return catalog::DatabaseError("53300", "sorry, too many clients already");
}

// A journal whose connection is lost: before the group arrived, or after it.
class BrokenJournal final : public JournalStore {
 public:
  Result<JournalTerm> BeginTerm() override { return JournalTerm::First(); }
  Status Append(JournalTerm, const std::vector<std::string>& entries, bool) override {
    if (failures.empty()) {
      written.insert(written.end(), entries.begin(), entries.end());
      return OkStatus();
    }
    tried.insert(tried.end(), entries.begin(), entries.end());
    Status failure = failures.back();
    failures.pop_back();
    return failure;
  }
  Result<std::vector<std::string>> ReadAll() override { return written; }
  std::vector<Status> failures;
  std::vector<std::string> tried, written;
};

class BrokenJournalTest : public ::testing::Test {
 protected:
  BrokenJournalTest() {
    options_.queue = QueueOf(3);
    options_.queue.journal = true;
    options_.workers = 1;
    events_.on_event = [this](const std::string& kind, const std::string& detail) {
      told_.push_back(kind + " " + detail);
    };
    host_ = std::make_unique<MasterHost>(
        Master(options_, kTimeZero), &journal_, JournalTerm::First(),
        [](const Master::Action&) { return Status(); }, progress_, events_);
  }
  Master::Options options_;
  BrokenJournal journal_;
  ProgressCallback progress_;
  EventCallback events_;
  std::vector<std::string> told_;
  std::unique_ptr<MasterHost> host_;
};

TEST_F(BrokenJournalTest, AGroupWhoseConnectionWasLostIsWrittenAgain) {
  journal_.failures = {Full(), Locked(), catalog::DatabaseError("57P01", "terminating connection"),
                       catalog::DatabaseError("08006", "the connection was lost")};
  host_->With([](Master& master, TimePoint now) { master.Start(now); });
  ASSERT_TRUE(host_->Save().ok());
  EXPECT_FALSE(host_->finished());
  ASSERT_EQ(journal_.written.size(), 1U);
  EXPECT_EQ(journal_.tried, std::vector<std::string>(4, journal_.written[0]));
  ASSERT_EQ(told_.size(), 1U) << "once";
  EXPECT_THAT(told_[0], HasSubstr("database_waits the job's journal cannot be written yet"));
}

TEST_F(BrokenJournalTest, WhatIsWrongWithTheGroupEndsTheJobAtOnce) {
  journal_.failures = {catalog::DatabaseError("42501", "permission denied")};
  host_->With([](Master& master, TimePoint now) { master.Start(now); });
  EXPECT_EQ(host_->Save().sqlstate(), "42501");
  EXPECT_EQ(host_->result().sqlstate(), "42501");
}

class DatabaseWaits : public MasterTest {};

TEST_F(DatabaseWaits, AShardIsNotChargedForALock) {
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  ASSERT_TRUE(master_->Heartbeat(two, At(1)).ok());
  for (const Status& cause : {Locked(), Full(), Locked(), Full(), Locked(), Full()}) {
    const std::optional<Task> task = Take(one);
    ASSERT_TRUE(task.has_value());
    ASSERT_TRUE(master_->Fail(one, task->id, cause, At(2)).ok());
    ASSERT_FALSE(master_->finished()) << master_->result().ToString();
  }
  Collect();
  EXPECT_EQ(Count("task_failed"), 0);
  EXPECT_EQ(Count("task_requeued"), 6);
}

TEST_F(DatabaseWaits, AJobThatTrainsNothingForSoLongEndsWithTheDatabasesOwnWord) {
  options_.database_seconds = 30;
  Start();
  const Incarnation one = started_[0].incarnation, two = started_[1].incarnation;
  ASSERT_TRUE(master_->Heartbeat(two, At(1)).ok());
  std::optional<Task> task = Take(one);
  ASSERT_TRUE(master_->Report(one, Done(*task), At(20)).ok());
  task = Take(one, 21);
  ASSERT_TRUE(master_->Fail(one, task->id, Locked(), At(49)).ok());
  EXPECT_FALSE(master_->finished()) << "somebody has trained";
  task = Take(two, 49);
  ASSERT_TRUE(master_->Fail(two, task->id, Locked(), At(51)).ok());
  EXPECT_TRUE(master_->finished());
  EXPECT_EQ(master_->result().sqlstate(), "55P03");
}

TEST_F(DatabaseWaits, WhatAWorkerWaitsForIsTold) {
  Start();
  ASSERT_TRUE(master_->Heartbeat(started_[0].incarnation, At(1)).ok());
  master_->Tell(started_[0].incarnation, kDatabaseWaits, "a lock of session 7");
  master_->Tell(Incarnation(12345), kDatabaseWaits, "of nobody");
  Collect();
  EXPECT_EQ(Count(kDatabaseWaits), 1);
  EXPECT_THAT(events_.back().detail, HasSubstr("a lock of session 7"));
}

// All workers of a machine have the same disk.
TEST_F(DatabaseWaits, ThatRowsAreReadAgainIsToldOnce) {
  Start();
  ASSERT_TRUE(master_->Heartbeat(started_[0].incarnation, At(1)).ok());
  master_->Tell(started_[0].incarnation, kRowsReadAgain, "the disk is full");
  master_->Tell(started_[0].incarnation, kRowsReadAgain, "the disk is full");
  Collect();
  EXPECT_EQ(Count(kRowsReadAgain), 1);
  EXPECT_THAT(events_.back().detail, HasSubstr("the disk is full"));
}

TEST(ShardsOfABusyDatabase, AreReadWhenItLets) {
  for (const Status& cause : {Locked(), Full()}) {
    const auto source = SmallSource(3'000);
    source->FailReads(1'000, 2, cause);
    const auto spec = source->Spec(1'000);
    const Result<TrainOutcome> outcome =
        TrainInProcess({.plan = SmallPlan(1, 64), .source = *source, .dataset = spec});
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(outcome->rows_per_epoch + outcome->validation_rows, 3'000);
  }
}

TEST(ShardsOfABusyDatabase, AreGivenUpAfterTheirPatience) {
  const auto source = SmallSource(3'000);
  source->FailReads(1'000, 1'000, Locked());
  plan::TrainPlan plan = SmallPlan(1, 64);
  plan.set_database_patience_seconds(1);
  const Result<TrainOutcome> outcome =
      TrainInProcess({.plan = plan, .source = *source, .dataset = source->Spec(1'000)});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.status().sqlstate(), "55P03");
  EXPECT_THAT(outcome.status().message(), HasSubstr("shard 1 could not be read for 1 seconds"));
  EXPECT_THAT(outcome.status().diagnostics()[0].detail, HasSubstr("DROP TABLE t"));
}

}  // namespace
}  // namespace sluice::elastic
