#include <gmock/gmock.h>

#include <atomic>
#include <csignal>

#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

// Jobs over a PostgreSQL: one database, many backends.
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
  // Whether the server's processes are this machine's.
  bool IsHere() const {
    std::ifstream in("/proc/" + std::to_string(Ask("SELECT pg_backend_pid()::bigint")) + "/comm");
    std::string name;
    return in >> name && name.starts_with("postgres");
  }
  // A backend that reads the points for a process that was started after `start` (the server's
  // clock, in microseconds), stopped; 0: there is none now.
  int StopAReader(int64_t start) const {
    const auto pid = static_cast<int>(Ask(
        "SELECT pid::bigint FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
        "pg_backend_pid() AND state = 'active' AND query LIKE '%points%' AND "
        "extract(epoch FROM backend_start) * 1000000 > " +
        std::to_string(start) + " LIMIT 1"));
    return pid > 0 && kill(pid, SIGSTOP) == 0 ? pid : 0;
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
        Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= epoch; }, 60);
        const Result<int> master = cluster.ProcessId("job1-master");
        if (!stop.stop_requested() && master.ok() && kill(*master, SIGKILL) == 0) {
          ++killed;
          Eventually(
              [&] { return stop.stop_requested() || Count(1, "master_took_over") >= killed; });
        }
      }
    });
    status = Run(TrainText("m", attributes), cluster, *source_, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(killed, 2);
  EXPECT_EQ(Count(1, "master_took_over"), 2);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(source_->models().Versions("", "m")->size(), 1U);
  EXPECT_TRUE(source_->jobs().Journal(1)->empty());
  RecordingSink quiet;
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, quiet).ok());
  EXPECT_EQ(source_->jobs().Find(1)->rows_trained, source_->jobs().Find(2)->rows_trained);
  EXPECT_EQ(source_->models().Find("", "m", {})->weights_sha256,
            source_->models().Find("", "u", {})->weights_sha256);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// The backend that one worker reads from hangs for ever. The worker heartbeats, so that nobody but
// the watch over its own reads can tell; the others of its world wait for its gradients. It ends
// itself, and another takes its place.
TEST_F(PostgresJobs, R7_AWorkerWhoseDatabaseHangsIsReplaced) {
  if (!IsHere()) {
    GTEST_SKIP() << "the PostgreSQL runs on another machine";
  }
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  std::stop_source over;
  std::atomic<int> stopped = 0;
  Status status;
  {
    const std::jthread trap([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested() || cluster.ProcessId("job1-worker-1").ok(); });
      const int64_t start = Ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint");
      while (stopped == 0 && !stop.stop_requested()) {
        stopped = StopAReader(start);
      }
    });
    const std::jthread patience([&](const std::stop_token& stop) {
      Eventually([&] { return stop.stop_requested(); }, 150);
      over.request_stop();
    });
    status = Run(TrainText("m",
                           "train.epoch=2, engine.num_workers=2, engine.max_workers=2, "
                           "engine.strategy='allreduce'"),
                 cluster, *Open(), sink, over.get_token());
  }
  if (stopped > 0) {
    kill(stopped, SIGCONT);  // the database is to be dropped
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(stopped, 0) << "nobody was caught while he read";
  EXPECT_THAT(Events(1), Contains(HasSubstr("the database has not answered for")));
  // The ledger has seen each row once in each epoch, or the job would have failed.
  EXPECT_GT(source_->jobs().Find(1)->rows_trained, 2 * kRows * 8 / 10);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

}  // namespace
}  // namespace sluice::executor
