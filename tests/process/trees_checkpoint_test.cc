#include "tests/process/killed_gateway.h"
#include "tests/support/postgres_server.h"

// Boosted trees with engine.checkpoint_dir: all of their processes are killed, and the same
// statement goes on.
namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHere[] = "engine.strategy='local'";
constexpr char kWorkers[] = "engine.num_workers=2, engine.max_workers=2";

class KilledTrees : public KilledGateway {
 protected:
  static std::string TreesText(const std::string& model, const std::string& attributes) {
    return "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=400, "
           "max_depth=5, subsample=0.8, eta=0.05, " +
           attributes + " LABEL y INTO " + model;
  }
  std::string Kept(const std::string& attributes) const {
    return "train.save_checkpoints_steps=10, engine.checkpoint_dir='" + Folder() + "', " +
           attributes;
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  void ExpectOneModel() {
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    ASSERT_TRUE(Run(TreesText("plain", kHere), cluster, *source_, sink).ok());
    RunWithKills(TreesText("here", Kept(kHere)));
    EXPECT_EQ(Sha("here"), Sha("plain"));
    RunWithKills(TreesText("killed", Kept(kWorkers)));
    EXPECT_EQ(Sha("killed"), Sha("plain"));
  }
  // The statement's refusal, where its checkpoints are of something else.
  std::string Refusal(const std::string& sql, LocalCluster& cluster) {
    RecordingSink sink;
    const Status status = Run(sql, cluster, *source_, sink);
    EXPECT_FALSE(status.ok());
    return RenderWithCaret(status, sql);
  }
  void ExpectDifferencesAreTold(const std::string& where) {
    const std::string train = TreesText("m", Kept(where));
    const pid_t gateway = Start(train);
    ASSERT_TRUE(Eventually([&] { return Written() > 0; }));
    SignalAll(gateway, SIGSTOP);  // the job survives
    LocalCluster cluster(Machine(8));
    EXPECT_THAT(Refusal(train, cluster), HasSubstr("another job is writing"));
    KillAll(gateway);
    EXPECT_THAT(Refusal(TreesText("other", Kept(where)), cluster),
                HasSubstr("holds checkpoints of another statement"));
    EXPECT_THAT(Refusal(TreesText("m", Kept(where) + ", gamma=1"), cluster),
                HasSubstr("empty the folder or name another"));
    const std::string elsewhere = where == std::string(kHere) ? kWorkers : kHere;
    EXPECT_THAT(Refusal(TreesText("m", Kept(elsewhere)), cluster),
                HasSubstr("holds checkpoints of "));
    const std::string network = TrainText("m", Saved(where));
    EXPECT_THAT(Refusal(network, cluster), HasSubstr("holds checkpoints of another statement"));
    EXPECT_EQ(catalog_->jobs().List()->size(), 1U) << "of the gateway that was killed";
    // As many rows, but not the same.
    ASSERT_TRUE(source_->Execute("UPDATE points SET a = a + 1 WHERE i = 777", nullptr, {}).ok());
    EXPECT_THAT(Refusal(train, cluster), HasSubstr("40001"));
    ASSERT_TRUE(source_->Execute("DELETE FROM points WHERE i = 777", nullptr, {}).ok());
    EXPECT_THAT(Refusal(train, cluster), HasSubstr("the data has changed since the checkpoint"));
  }
};

TEST_F(KilledTrees, ResumedAreTheTreesOfAnUndisturbedRun) {
  ExpectOneModel();
}

TEST_F(KilledTrees, WhatDoesNotFitIsToldInProcess) {
  ExpectDifferencesAreTold(kHere);
}

TEST_F(KilledTrees, WhatDoesNotFitIsToldOnWorkers) {
  ExpectDifferencesAreTold(kWorkers);
}

// A master that took over writes checkpoints like the first one.
TEST_F(KilledTrees, ALostMasterThenEverythingLost) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  ASSERT_TRUE(Run(TreesText("plain", kHere), cluster, *source_, sink).ok());
  const std::string train = TreesText("killed", Kept(kWorkers));
  for (int job = 2; job <= 3; ++job) {  // the second one resumes
    const pid_t gateway = Start(train);
    ASSERT_TRUE(Eventually([&] { return Count(job, "checkpoint_written") > 0; }));
    const int master = MasterOf(gateway);
    ASSERT_GT(master, 0);
    kill(master, SIGKILL);
    ASSERT_TRUE(Eventually([&] { return Count(job, "training_goes_on") > 0; }));
    const int written = Count(job, "checkpoint_written");
    ASSERT_TRUE(Eventually([&] { return Count(job, "checkpoint_written") > written; }));
    KillAll(gateway);
  }
  const Status status = Run(train, cluster, *source_, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(sink.notices, Contains(StartsWith("the training goes on from step ")));
  EXPECT_EQ(Sha("killed"), Sha("plain"));
}

class KilledTreesOverPostgres : public KilledTrees {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    KilledTrees::SetUp();  // the folder of the checkpoints
    UsePostgres(database_.url());
  }

  testing::PostgresTestDatabase database_;
};

TEST_F(KilledTreesOverPostgres, ResumedAreTheTreesOfAnUndisturbedRun) {
  ExpectOneModel();
}

}  // namespace
}  // namespace sluice::executor
