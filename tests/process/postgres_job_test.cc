#include <gmock/gmock.h>

#include <csignal>

#include "tests/process/cluster_job.h"
#include "tests/support/database_proxy.h"
#include "tests/support/postgres_server.h"

// Jobs over PostgreSQL: one database, many backends.
namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

class PostgresJobs : public ClusterJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_.url());
  }
  testing::PostgresTestDatabase database_;
};

TEST_F(PostgresJobs, K20_KilledMastersAreSucceeded) {
  LocalCluster cluster(Machine(8));
  const std::string attributes =
      "train.epoch=4, engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true";
  RecordingSink sink;
  Status status;
  int killed = 0;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      for (int epoch = 1; epoch <= 2; ++epoch) {
        EXPECT_TRUE(
            Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= epoch; }));
        const Result<int> master = cluster.ProcessId("job1-master");
        if (!stop.stop_requested() && master.ok() && kill(*master, SIGKILL) == 0) {
          ++killed;
          EXPECT_TRUE(Eventually(
              [&] { return stop.stop_requested() || Count(1, "master_took_over") >= killed; }));
        }
      }
    });
    status = Run(TrainText("m", attributes), cluster, *source_, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(killed, 2);
  EXPECT_EQ(Count(1, "master_took_over"), 2);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(catalog_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(catalog_->jobs().Journal(1)->empty());
  RecordingSink quiet;
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, quiet).ok());
  EXPECT_EQ(catalog_->jobs().Find(1)->rows_trained, catalog_->jobs().Find(2)->rows_trained);
  EXPECT_EQ(catalog_->models().Find("", "m", {})->weights_sha256,
            catalog_->models().Find("", "u", {})->weights_sha256);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// The backend that one worker reads from hangs for ever. The worker's heartbeat continues, so only
// the watch over its own reads can notice; the others in its world wait for its gradients. It ends
// itself, and another takes its place.
TEST_F(PostgresJobs, R7_AWorkerWhoseDatabaseHangsIsReplaced) {
  testing::DatabaseProxy proxy(PortOf(database_.url()));
  const auto through =
      catalog::OpenDataSource(UrlBy(database_.url(), "postgres", proxy.port())).value();
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source over;
  Status status;
  {
    const std::jthread trap([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually(
          [&] { return stop.stop_requested() || cluster.ProcessId("job1-worker-1").ok(); }));
      proxy.FreezeAReader(100'000);  // only a worker reads this much from here on
    });
    const std::jthread patience([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested(); }));
      over.request_stop();
    });
    status = Run(TrainText("m",
                           "train.epoch=2, engine.num_workers=2, engine.max_workers=2, "
                           "engine.strategy='allreduce'"),
                 cluster, *through, sink, over.get_token());
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(proxy.has_frozen_reader()) << "nobody was caught while he read";
  EXPECT_THAT(Events(1), Contains(HasSubstr("the database has not answered for")));
  // The ledger has each row once in each epoch, or the job would have failed.
  EXPECT_GT(catalog_->jobs().Find(1)->rows_trained, 2 * kRows * 8 / 10);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

}  // namespace
}  // namespace sluice::executor
