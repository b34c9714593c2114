#include "elastic/job/tree_checkpoints.h"

#include <gmock/gmock.h>

#include <fstream>

#include "catalog/dataset.pb.h"
#include "tests/elastic/job/resumed_job.h"
#include "tests/elastic/job/trees_plan.h"

namespace sluice::elastic {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Boosted trees on a fleet.
class ResumedTrees : public ResumedJob {
 protected:
  plan::TrainPlan Plan(uint32_t workers) const {
    plan::TrainPlan plan = TreesPlan(rounds_, workers);
    plan.mutable_strategy()->set_max_workers(workers);
    *plan.mutable_checkpoints() =
        ResumedJob::Plan(plan::Strategy::PARAMETER_SERVER, workers).checkpoints();
    return plan;
  }
  std::string Undisturbed() {
    plan::TrainPlan plan = Plan(1);
    plan.clear_checkpoints();
    return Run(plan).value().trees;
  }

  int64_t rounds_ = 200;
};

TEST_F(ResumedTrees, AreThoseOfAnUndisturbedRunOnAnyNumberOfWorkers) {
  const std::string undisturbed = Undisturbed();
  Stopped(Plan(2), 2);
  EXPECT_EQ(Checkpoints().size(), 2U);
  Stopped(Plan(3), 1);
  EXPECT_THAT(events_, Contains(StartsWith("resumed at step ")));
  const Result<TrainOutcome> last = Run(Plan(1));
  ASSERT_TRUE(last.ok()) << last.status().ToString();
  EXPECT_THAT(events_, Contains(StartsWith("resumed at step ")));
  EXPECT_EQ(last->trees, undisturbed);
  EXPECT_EQ(last->epochs, 200);
  EXPECT_EQ(last->rows_per_epoch + last->validation_rows, kRows);
}

TEST_F(ResumedTrees, GoOnWithTheSameRowsOnly) {
  Stopped(Plan(2), 1);
  std::vector<std::vector<double>> rows = SmallRows(kRows);
  rows[4'321][0] += 0.5;
  source_ = std::make_unique<testing::MemorySource>(std::vector<std::string>{"a", "b", "c", "y"},
                                                    std::move(rows));
  const Result<TrainOutcome> other = Run(Plan(2));
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.status().diagnostics().front().sqlstate, "40001") << other.status().ToString();
}

// The one before it is as good.
TEST_F(ResumedTrees, PassOverADamagedCheckpoint) {
  const std::string undisturbed = Undisturbed();
  Stopped(Plan(2), 2);
  const std::vector<fs::path> written = Checkpoints();
  ASSERT_EQ(written.size(), 2U);
  fs::resize_file(written.back() / "partition-0", 100);
  EXPECT_THAT(JobCheckpoints::Open(Plan(2)).value()->damaged(),
              ::testing::ElementsAre(HasSubstr("is damaged")));
  EXPECT_EQ(Run(Plan(2)).value().trees, undisturbed);
}

// Its bytes are as they were written, but no forest: by another program.
TEST_F(ResumedTrees, RefuseWhatIsNoForest) {
  const auto forge = [this](const TreeCheckpoint& trees) {
    fs::remove_all(path_);
    JobCheckpoints checkpoints = JobCheckpoints::Open(Plan(2)).value().value();
    EXPECT_TRUE(checkpoints.DataToRun(Counted(source_->Spec(kRowsPerShard)), nullptr).ok());
    CheckpointDirectory directory = checkpoints.directory();
    const auto draft = directory.Begin().value();
    CheckpointManifest manifest = checkpoints.Manifest();
    manifest.partitions = 1;
    manifest.files = {CheckpointDirectory::WritePartition(draft.path, 0, [&](const auto& sink) {
                        return sink(trees.Encode().value());
                      }).value()};
    EXPECT_TRUE(directory.Commit(draft, manifest).ok());
  };
  const size_t shards = kRows / kRowsPerShard;
  TreeCheckpoint trees;
  trees.rows.rows.assign(shards, -1);
  forge(trees);
  EXPECT_TRUE(Run(Plan(2)).ok()) << "nothing was known: it begins";
  trees.remembered = {"no forest"};
  forge(trees);
  EXPECT_EQ(Run(Plan(2)).status().code(), Code::kInternal);
  trees.remembered.clear();
  trees.rows.rows.pop_back();
  forge(trees);
  EXPECT_EQ(Run(Plan(2)).status().code(), Code::kInternal);
}

TEST_F(ResumedTrees, ASuspendedJobWritesACheckpointAndEnds) {
  rounds_ = 600;  // progress is told once a second
  const std::string undisturbed = Undisturbed();
  plan::TrainPlan plan = Plan(2);
  plan.mutable_checkpoints()->set_every_steps(1'000'000);
  std::optional<JobCheckpoints> checkpoints = JobCheckpoints::Open(plan).value();
  const auto data = checkpoints->DataToRun(Counted(source_->Spec(kRowsPerShard)), nullptr).value();
  ThreadFleet fleet(*source_);
  std::stop_source suspend;
  bool suspended = false;
  ProgressCallback progress = [&](const Progress& now) {
    if (now.epoch > Epoch(3)) {
      suspend.request_stop();
    }
  };
  const Result<TrainOutcome> outcome = TrainOnFleet({.plan = plan,
                                                     .source = *source_,
                                                     .dataset = data,
                                                     .progress = progress,
                                                     .suspend = suspend.get_token(),
                                                     .suspended = [&] { suspended = true; },
                                                     .checkpoints = &*checkpoints},
                                                    fleet, "job1");
  checkpoints.reset();
  ASSERT_FALSE(outcome.ok()) << "it ended before it could be suspended";
  EXPECT_TRUE(suspended);
  EXPECT_EQ(outcome.status().code(), Code::kAborted) << outcome.status().ToString();
  EXPECT_EQ(Checkpoints().size(), 1U);
  const Result<TrainOutcome> resumed = Run(plan);
  ASSERT_TRUE(resumed.ok()) << resumed.status().ToString();
  EXPECT_EQ(resumed->trees, undisturbed);
  EXPECT_EQ(Count("resumed"), 1);
}

TEST(TreeCheckpointTest, IsReadAsItWasWritten) {
  const TreeCheckpoint trees{.remembered = {"start", "", "round"},
                             .rows = {.rows = {4, -1}, .checksums = {7, 0}},
                             .judges = 3};
  const std::string bytes = trees.Encode().value();
  const TreeCheckpoint again = TreeCheckpoint::Decode(bytes, 2).value();
  EXPECT_EQ(again.remembered, trees.remembered);
  EXPECT_EQ(again.rows.rows, trees.rows.rows);
  EXPECT_EQ(again.rows.checksums, trees.rows.checksums);
  EXPECT_EQ(again.judges, 3U);
  EXPECT_EQ(again.rounds(), 2);
  EXPECT_FALSE(TreeCheckpoint::Decode(bytes, 3).ok());
  EXPECT_FALSE(TreeCheckpoint::Decode(bytes.substr(3), 2).ok());
}

}  // namespace
}  // namespace sluice::elastic
