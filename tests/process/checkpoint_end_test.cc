#include <gmock/gmock.h>

#include <atomic>

#include "elastic/storage/checkpoint.h"
#include "tests/process/cluster_job.h"

// All processes are killed when the model is stored and its checkpoints are not removed yet.
namespace sluice::executor {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class FinishedJob : public ClusterJobs, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string Folder() const { return (folder_ / "checkpoints").string(); }
  std::string Copy() const { return (folder_ / "copy").string(); }
  std::string Train() const {
    return TrainText("m", std::string("train.epoch=3, train.save_checkpoints_steps=10, "
                                      "engine.seed=5, engine.keep_checkpoint_max=0, "
                                      "engine.checkpoint_dir='") +
                              Folder() + "', " + GetParam());
  }
  // Copies the folder as it is when the job ends; false: it was removed too fast.
  bool CopyWhenItEnds(const std::stop_token& stop) const {
    while (!fs::exists(Folder() + "/ending")) {
      if (stop.stop_requested()) {
        return false;
      }
      std::this_thread::yield();
    }
    std::error_code error;
    fs::copy(Folder(), Copy(), fs::copy_options::recursive, error);
    return !error;
  }
  // Runs the statement until there is such a copy; returns its job, 0: none.
  int64_t RunAndCopy(LocalCluster& cluster) {
    for (int64_t job = 1; job <= 8; ++job) {
      fs::remove_all(Copy());
      RecordingSink sink;
      std::atomic<bool> copied = false;
      {
        const std::jthread copier(
            [&](const std::stop_token& stop) { copied = CopyWhenItEnds(stop); });
        const Status status = Run(Train(), cluster, *source_, sink);
        EXPECT_TRUE(status.ok()) << status.ToString();
      }
      EXPECT_TRUE(fs::is_empty(Folder()) ||
                  fs::directory_iterator(Folder())->path().filename() == "lock");
      // The job may have deleted it while it was copied.
      const auto copy = elastic::CheckpointDirectory::Open(Copy(), 0);
      if (copied && copy.ok() && copy->Newest().ok() && copy->Newest().value().has_value()) {
        return job;
      }
    }
    return 0;
  }
  void PutBack() const {
    fs::remove_all(Folder());
    fs::copy(Copy(), Folder(), fs::copy_options::recursive);
  }
};

TEST_P(FinishedJob, P16_ItsCheckpointsAreNotGoneOnWith) {
  LocalCluster cluster(Machine(8));
  const int64_t job = RunAndCopy(cluster);
  ASSERT_GT(job, 0) << "no job said that it was about to store its model";
  {
    const auto directory = elastic::CheckpointDirectory::Open(Copy(), 0).value();
    ASSERT_TRUE(directory.Newest().value().has_value());
    EXPECT_EQ(*directory.CommittingJob(), job);
  }
  const int64_t rows = catalog_->jobs().Find(job)->rows_trained;
  PutBack();
  RecordingSink sink;
  const Status again = Run(Train(), cluster, *source_, sink);
  ASSERT_TRUE(again.ok()) << again.ToString();
  EXPECT_THAT(sink.notices, Contains(HasSubstr("left over from job " + std::to_string(job))));
  EXPECT_THAT(sink.notices, Not(Contains(StartsWith("the training goes on from"))));
  EXPECT_EQ(catalog_->jobs().Find(job + 1)->rows_trained, rows);
  EXPECT_EQ(Count(job + 1, "resumed"), 0);

  // A job that was about to store its model, but did not.
  PutBack();
  {
    const auto directory = elastic::CheckpointDirectory::Open(Folder(), 0).value();
    ASSERT_TRUE(directory.SetCommittingJob(999).ok());
  }
  RecordingSink resumed;
  ASSERT_TRUE(Run(Train(), cluster, *source_, resumed).ok());
  EXPECT_THAT(resumed.notices, Contains(StartsWith("the training goes on from step ")));
  EXPECT_EQ(Count(job + 2, "resumed"), 1);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, FinishedJob,
                         ::testing::Values("engine.strategy='local'",
                                           "engine.num_workers=1, engine.num_ps=1"),
                         [](const auto& of) { return of.index == 0 ? "Local" : "OnProcesses"; });

}  // namespace
}  // namespace sluice::executor
