#include "executor/jobs/lost_jobs.h"
#include "tests/process/killed_gateway.h"

namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(KilledGateway, G4_SynchronousResumedHasTheWeightsOfAnUndisturbedRun) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const std::string plain =
      "train.epoch=8, train.batch_size=512, engine.seed=5, engine.num_workers=2, "
      "engine.max_workers=2, engine.sync=true, engine.num_ps=";
  ASSERT_TRUE(Run(TrainText("plain", plain + "1"), cluster, *source_, sink).ok());
  RunWithKills("killed",
               "train.batch_size=512, engine.num_workers=2, engine.max_workers=2, "
               "engine.sync=true, engine.num_ps=2",
               8);
  EXPECT_EQ(Weights("killed"), Weights("plain"));
}

TEST_F(KilledGateway, P12_P16_AsynchronousTrainsEveryRowOnce) {
  RunWithKills("killed", "engine.num_workers=2, engine.num_ps=2", 12);
  const catalog::Job job = catalog_->jobs().List().value().front();
  const catalog::ModelVersion version = catalog_->models().Find("", "killed", std::nullopt).value();
  // The master has compared the ledger with count(*), or the job would have failed.
  EXPECT_EQ(job.rows_trained % 12, 0);
  EXPECT_GT(job.rows_trained, 12 * kRows * 8 / 10);
  EXPECT_EQ(version.rows, job.rows_trained);
}

TEST_F(KilledGateway, AllReduceResumedHasTheWeightsOfAnUndisturbedRun) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const std::string workers =
      "engine.num_workers=2, engine.max_workers=2, engine.strategy='allreduce'";
  ASSERT_TRUE(
      Run(TrainText("plain", "train.epoch=40, engine.seed=5, " + workers), cluster, *source_, sink)
          .ok());
  RunWithKills("killed", workers, 40);
  EXPECT_EQ(Weights("killed"), Weights("plain"));
}

// A master that took over writes checkpoints like the first one.
TEST_F(KilledGateway, ALostMasterThenEverythingLost) {
  const std::string strategy =
      "train.batch_size=512, engine.num_workers=2, engine.max_workers=2, engine.sync=true, "
      "engine.num_ps=2";
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  ASSERT_TRUE(
      Run(TrainText("plain", "train.epoch=8, engine.seed=5, " + strategy), cluster, *source_, sink)
          .ok());
  const std::string train = TrainText("killed", Saved(strategy, 8));
  const pid_t gateway = Start(train);
  ASSERT_TRUE(Eventually([&] { return Count(2, "checkpoint_written") > 0; }));
  const int master = MasterOf(gateway);
  ASSERT_GT(master, 0);
  kill(master, SIGKILL);
  ASSERT_TRUE(Eventually([&] { return Count(2, "master_took_over") > 0; }));
  const int written = Count(2, "checkpoint_written");
  ASSERT_TRUE(Eventually([&] { return Count(2, "checkpoint_written") > written; }));
  KillAll(gateway);
  const Status status = Run(train, cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(sink.notices, Contains(StartsWith("the training goes on from step ")));
  EXPECT_EQ(Weights("killed"), Weights("plain"));
}

TEST_F(KilledGateway, ItsJobIsNotRunningForEver) {
  const std::string train =
      TrainText("m", Saved("engine.num_workers=2, engine.max_workers=2, engine.sync=true"));
  const pid_t gateway = Start(train);
  ASSERT_TRUE(Eventually([&] { return Count(1, "checkpoint_written") > 0; }));
  ASSERT_TRUE(MarkLostJobs(catalog_->jobs()).ok());
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kRunning);
  KillAll(gateway);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kRunning) << "nobody could say so";
  ASSERT_TRUE(MarkLostJobs(catalog_->jobs()).ok());
  const catalog::Job job = catalog_->jobs().Find(1).value();
  EXPECT_EQ(job.state, catalog::JobState::kFailed);
  EXPECT_THAT(job.error, HasSubstr("run it again: it continues from step "));
  EXPECT_THAT(job.error,
              HasSubstr(" in " + std::filesystem::path(Folder()).lexically_normal().string()));
}

TEST_F(KilledGateway, WhatDoesNotFitIsToldBeforeThereIsAJob) {
  const std::string attributes = "engine.num_workers=2, engine.num_ps=1";
  const pid_t gateway = Start(TrainText("m", Saved(attributes)));
  ASSERT_TRUE(Eventually([&] { return Written() > 0; }));
  SignalAll(gateway, SIGSTOP);  // the job survives
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const auto refusal = [&](const std::string& sql) {
    const Status status = Run(sql, cluster, *source_, sink);
    EXPECT_FALSE(status.ok());
    const std::string text = RenderWithCaret(status, sql);
    EXPECT_THAT(text, HasSubstr("LINE 1")) << text;
    return text;
  };
  EXPECT_THAT(refusal(TrainText("m", Saved(attributes))), HasSubstr("another job is writing"));
  KillAll(gateway);
  EXPECT_THAT(refusal(TrainText("other", Saved(attributes))),
              HasSubstr("holds checkpoints of another statement"));
  EXPECT_THAT(refusal(TrainText("m", Saved(attributes + ", train.batch_size=7"))),
              HasSubstr("empty the folder or name another"));
  EXPECT_EQ(catalog_->jobs().List()->size(), 1U) << "of the gateway that was killed";
  ASSERT_TRUE(source_
                  ->Execute("INSERT INTO points SELECT i + 100000, a, b, y FROM points LIMIT 9",
                            nullptr, {})
                  .ok());
  EXPECT_THAT(refusal(TrainText("m", Saved(attributes))),
              HasSubstr("the data has changed since the checkpoint"));
}

}  // namespace
}  // namespace sluice::executor
