#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <string_view>

#include "tests/process/cluster_job.h"
#include "tests/support/database_proxy.h"
#include "tests/support/postgres_server.h"

// Jobs whose database fails: connections that break, a server that restarts, locks, no free
// connections.
namespace sluice::executor {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class LostDatabase : public ClusterJobs {
 protected:
  static constexpr const char* kSynchronous =
      "engine.seed=5, engine.num_workers=2, engine.max_workers=2, engine.num_ps=2, "
      "engine.sync=true, ";

  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    std::string pattern = ::testing::TempDir() + "/sluice-lost-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    UsePostgres(database_.url());
  }
  // In this database only: the server is shared with other tests.
  int64_t LocksWaitedFor() const {
    return Ask(
        "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database WHERE NOT "
        "granted AND datname = current_database()");
  }
  std::string UrlBy(const std::string& who, int port) const {
    return ClusterJobs::UrlBy(database_.url(), who, port);
  }
  int Port() const { return PortOf(database_.url()); }
  std::string Checkpoints() const {
    return "train.save_checkpoints_steps=50, engine.checkpoint_dir='" +
           (folder_ / "checkpoints").string() + "', ";
  }
  // Number of the job's workers that have started; 0 also before there is a job.
  int Started(int64_t job) const {
    return catalog_->jobs().Find(job).ok() ? Count(job, "worker_started") : 0;
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt).value().weights_sha256;
  }

  testing::PostgresTestDatabase database_;
};

// The master records its decisions in this table. While it cannot, it still judges workers, rows
// are trained, and clients get progress.
TEST_F(LostDatabase, ALockedJournalHoldsUpNoTrainingAndHidesNoLostWorker) {
  constexpr auto kLocked = std::chrono::seconds(20);
  LocalCluster cluster(Machine(8));
  const auto holder = Open();
  RecordingSink sink;
  Status status;
  int64_t rows_when_lost = 0, rows_when_let_go = 0;
  bool told = false;
  {
    const std::jthread fault_injector([&](const std::stop_token& stop) {
      const auto rows = [&] {
        const auto job = catalog_->jobs().Find(1);
        return job.ok() ? job->rows_trained : 0;
      };
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Started(1) == 2; }));
      ASSERT_TRUE(holder->Execute("BEGIN", nullptr, {}).ok());
      ASSERT_EQ(Ask(*holder, "SELECT term FROM sluice.job_terms WHERE job_id = 1 FOR UPDATE"), 1);
      const auto locked_until = std::chrono::steady_clock::now() + kLocked;
      const Result<int> worker = cluster.ProcessId("job1-worker-1");
      ASSERT_TRUE(worker.ok()) << worker.status().ToString();
      ASSERT_EQ(kill(*worker, SIGKILL), 0);
      told = Eventually([&] { return stop.stop_requested() || Count(1, "worker_lost") == 1; },
                        kLocked);
      rows_when_lost = rows();
      while (!stop.stop_requested() && std::chrono::steady_clock::now() < locked_until) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      rows_when_let_go = rows();
      EXPECT_EQ(Count(1, "worker_lost"), 1) << "nobody else was given up";
      ASSERT_TRUE(holder->Execute("COMMIT", nullptr, {}).ok());
    });
    // One epoch, as long as the lock is held.
    status = Run(TrainText("m",
                           "engine.num_workers=2, engine.max_workers=2, engine.num_ps=1, "
                           "train.epoch=1, train.batch_size=1"),
                 cluster, *Open(), sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(told);
  EXPECT_GT(rows_when_let_go, rows_when_lost + 1'000) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(Count(1, "worker_lost"), 1) << ::testing::PrintToString(Events(1));
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// A pooler's time-out, or an administrator: idle connections end, but the job is not affected.
TEST_F(LostDatabase, ConnectionsThatEndAreMadeAnew) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const std::string attributes = std::string(kSynchronous) + "train.batch_size=512, train.epoch=6";
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, sink).ok());
  std::atomic<int64_t> ended = 0;
  Status status;
  {
    const std::jthread killer([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
      while (!stop.stop_requested()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        ended +=
            Ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname "
                "= current_database() AND pid <> pg_backend_pid() AND state = 'idle' AND "
                "application_name = 'sluice'");
      }
    });
    status = Run(TrainText("m", attributes), cluster, *Open(), sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_GT(ended, 10);
  EXPECT_EQ(Sha("m"), Sha("u"));
  EXPECT_EQ(catalog_->jobs().Find(2)->state, catalog::JobState::kSucceeded);
  EXPECT_TRUE(catalog_->jobs().Journal(2)->empty());
}

// All connections break, including busy ones; the snapshot is lost.
TEST_F(LostDatabase, AJobWithoutCheckpointsEndsAndIsClosed) {
  testing::DatabaseProxy proxy(Port());
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const auto through = catalog::OpenDataSource(UrlBy("postgres", proxy.port())).value();
  Status status;
  {
    const std::jthread fault([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      proxy.Cut();
    });
    status = Run(
        TrainText("m", std::string(kSynchronous) + "train.epoch=2000, engine.database_patience=2"),
        cluster, *through, sink);
  }
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kRunning);
  proxy.Restore();
  EXPECT_TRUE(Eventually([&] {
    return catalog_->jobs().Find(1)->state == catalog::JobState::kFailed;
  })) << "it is closed as soon as the database answers";
  EXPECT_TRUE(Eventually([&] { return catalog_->jobs().Journal(1)->empty(); }));
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// The same in the session's own process, and through a master with workers.
class NewSnapshot : public LostDatabase, public ::testing::WithParamInterface<const char*> {
 protected:
  // Trains m through a proxy that breaks all connections, and works again at once: while the rows
  // are read, or, where other processes read them, once an epoch has been trained.
  Status TrainThroughARestart(const std::string& attributes, LocalCluster& cluster,
                              RecordingSink& sink) {
    testing::DatabaseProxy proxy(Port());
    const auto through = catalog::OpenDataSource(UrlBy("postgres", proxy.port())).value();
    const std::jthread fault([&](const std::stop_token& stop) {
      if (in_process_) {  // which has all rows in its memory after the first epoch
        EXPECT_TRUE(
            Eventually([&] { return stop.stop_requested() || catalog_->jobs().Find(2).ok(); }));
        proxy.FreezeAReader(kSomeRows);
        EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || proxy.has_frozen_reader(); }));
      } else {
        EXPECT_TRUE(
            Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
      }
      proxy.Cut();
      proxy.Restore();
      for (int i = 1; i <= 2; ++i) {  // a worker that starts now has to read
        const auto worker = cluster.ProcessId("job2-worker-" + std::to_string(i));
        if (worker.ok()) {
          kill(*worker, SIGKILL);
        }
      }
    });
    return Run(TrainText("m", attributes), cluster, *through, sink);
  }
  std::string Attributes() const {
    return GetParam() + std::string(" engine.seed=5, train.disk_cache=false, train.epoch=6");
  }

  static constexpr int64_t kSomeRows = 100'000;  // bytes
  const bool in_process_ = std::string_view(GetParam()).find("local") != std::string_view::npos;
};

TEST_P(NewSnapshot, IsBegunAgainOnWhereItIsAllowed) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  ASSERT_TRUE(Run(TrainText("u", Attributes()), cluster, *source_, sink).ok());
  const Status status =
      TrainThroughARestart(Attributes() + ", engine.new_snapshot=true", cluster, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Count(2, "training_begins_again"), 1) << ::testing::PrintToString(Events(2));
  EXPECT_THAT(sink.notices, Contains(HasSubstr("begun again on a new")));
  EXPECT_EQ(Sha("m"), Sha("u"));
  const catalog::Job job = catalog_->jobs().Find(2).value();
  EXPECT_EQ(job.rows_trained, catalog_->jobs().Find(1)->rows_trained);
  plan::TrainPlan plan;
  ASSERT_TRUE(plan.ParseFromString(catalog_->models().Find("", "m", std::nullopt)->plan));
  EXPECT_THAT(plan.told(), Contains(HasSubstr("begun again on a new")));
}

TEST_P(NewSnapshot, IsAdvisedWhereItIsNot) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  ASSERT_TRUE(Run(TrainText("u", Attributes()), cluster, *source_, sink).ok());
  const Status status = TrainThroughARestart(Attributes(), cluster, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.ToString(), HasSubstr("engine.new_snapshot=true"));
  EXPECT_FALSE(catalog_->models().Find("", "m", std::nullopt).ok());
}

INSTANTIATE_TEST_SUITE_P(Everywhere, NewSnapshot,
                         ::testing::Values("engine.strategy='local',",
                                           "engine.num_workers=2, engine.max_workers=2, "
                                           "engine.num_ps=2, engine.sync=true,"),
                         [](const auto& tested) {
                           return std::string_view(tested.param).find("local") !=
                                          std::string_view::npos
                                      ? "InProcess"
                                      : "OnProcesses";
                         });

TEST_F(LostDatabase, AJobWithCheckpointsGoesOnWhenItIsBack) {
  testing::DatabaseProxy proxy(Port());
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const std::string attributes = std::string(kSynchronous) + "train.epoch=4";
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *source_, sink).ok());
  const auto through = catalog::OpenDataSource(UrlBy("postgres", proxy.port())).value();
  Status status;
  {
    const std::jthread fault([&](const std::stop_token& stop) {
      EXPECT_TRUE(
          Eventually([&] { return stop.stop_requested() || Count(2, "checkpoint_written") >= 2; }));
      proxy.Cut();
      std::this_thread::sleep_for(std::chrono::seconds(1));
      proxy.Restore();
      // A worker that starts now has to read, but its data is gone.
      for (int i = 1; i <= 2; ++i) {
        const auto worker = cluster.ProcessId("job2-worker-" + std::to_string(i));
        if (worker.ok()) {
          kill(*worker, SIGKILL);
        }
      }
    });
    status = Run(TrainText("m", Checkpoints() + attributes), cluster, *through, sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(catalog_->jobs().Find(2)->state, catalog::JobState::kSucceeded);
  EXPECT_EQ(Sha("m"), Sha("u"));
  EXPECT_EQ(Count(2, "database_back"), 1) << ::testing::PrintToString(Events(2));
  EXPECT_THAT(sink.notices, Contains(HasSubstr("the database is waited for")));
  EXPECT_TRUE(catalog_->jobs().Journal(2)->empty());
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// Another session waits for an exclusive lock on the table, for the job; workers that start then
// would wait behind it.
class BehindALock : public LostDatabase, public ::testing::WithParamInterface<const char*> {
 protected:
  // Requests the lock once an epoch of job 2 has been trained, and kills both workers.
  void WantTheTable(catalog::DataSource& other, const std::stop_token& stop, std::jthread* changes,
                    LocalCluster& cluster) {
    EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(2, "epoch_done") >= 1; }));
    *changes = std::jthread([&other] {
      if (std::string_view(GetParam()).starts_with("LOCK")) {
        EXPECT_TRUE(other.Execute("BEGIN", nullptr, {}).ok());
      }
      EXPECT_TRUE(other.Execute(GetParam(), nullptr, {}).ok());
    });
    EXPECT_TRUE(Eventually([&] { return LocksWaitedFor() > 0; }));
    for (int i = 1; i <= 2; ++i) {
      const auto worker = cluster.ProcessId("job2-worker-" + std::to_string(i));
      if (worker.ok()) {
        kill(*worker, SIGKILL);
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Statements, BehindALock,
                         ::testing::Values("ALTER TABLE points ADD COLUMN z int",
                                           "DROP TABLE points", "TRUNCATE points",
                                           "VACUUM FULL points",
                                           "LOCK TABLE points IN ACCESS EXCLUSIVE MODE"),
                         [](const auto& named) {
                           const std::string text = named.param;
                           return text.substr(0, text.find(' '));
                         });

TEST_P(BehindALock, WorkersGetTheirRowsFromWhoHoldsTheSnapshot) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  const std::string attributes = std::string(kSynchronous) + "train.epoch=3";
  ASSERT_TRUE(Run(TrainText("u", attributes), cluster, *Open(), sink).ok());
  const auto other = Open();
  std::jthread changes;
  Status status;
  {
    const std::jthread fault(
        [&](const std::stop_token& stop) { WantTheTable(*other, stop, &changes, cluster); });
    status = Run(TrainText("m", attributes), cluster, *Open(), sink);
  }
  ASSERT_TRUE(status.ok()) << status.ToString() << ::testing::PrintToString(Events(2));
  changes.join();  // it has got its lock
  EXPECT_EQ(Sha("m"), Sha("u"));
  EXPECT_EQ(Count(2, "worker_lost"), 2)
      << "those that were killed: " << ::testing::PrintToString(Events(2));
  EXPECT_EQ(Count(2, elastic::kDatabaseWaits), 0) << ::testing::PrintToString(Events(2));
}

// CANCEL JOB ends a job for which another session waits, and its workers' sessions.
TEST_F(LostDatabase, AJobForWhichASessionWaitsIsCancelled) {
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  std::stop_source over;
  const auto other = Open();
  std::jthread changes;
  {
    const std::jthread fault([&](const std::stop_token& stop) {
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || Count(1, "epoch_done") >= 1; }));
      changes = std::jthread([&] {
        static_cast<void>(other->Execute("DROP TABLE points", nullptr, over.get_token()));
      });
      EXPECT_TRUE(Eventually([&] { return LocksWaitedFor() > 0; }));
      const auto worker = cluster.ProcessId("job1-worker-1");
      if (worker.ok()) {
        kill(*worker, SIGKILL);
      }
      EXPECT_TRUE(Eventually([&] { return Started(1) > 2; }));
      EXPECT_TRUE(catalog_->jobs().RequestCancel(1).ok());
    });
    status = Run(TrainText("m",
                           "engine.num_workers=2, engine.strategy='allreduce', "
                           "train.epoch=2000"),
                 cluster, *Open(), sink);
  }
  EXPECT_EQ(status.sqlstate(), "57014") << status.ToString();
  changes.join();  // nothing blocks it
  EXPECT_EQ(LocksWaitedFor(), 0);
  EXPECT_EQ(catalog_->jobs().Find(1)->state, catalog::JobState::kCancelled);
  EXPECT_EQ(ChildrenOf(getpid()), 0);
}

// Fewer connections than the workers need: some of them wait, and none is blamed for it.
TEST_F(LostDatabase, TooFewConnectionsAreNobodysMistake) {
  const std::string role = "few_" + std::to_string(getpid());
  // Every hundredth row takes as many seconds as the sequence says. A sequence has its present
  // value in every snapshot.
  for (const std::string& statement :
       {"CREATE ROLE " + role + " LOGIN CONNECTION LIMIT 10",
        "CREATE SCHEMA sluice AUTHORIZATION " + role,
        std::string("CREATE SEQUENCE pace MINVALUE 0 START 0"),
        std::string("CREATE FUNCTION paced(i bigint, a float8) RETURNS float8 IMMUTABLE LANGUAGE "
                    "sql AS 'SELECT CASE WHEN i % 100 <> 0 THEN a WHEN pg_sleep((SELECT last_value "
                    "FROM public.pace)) IS NULL THEN NULL ELSE a END'"),
        "GRANT SELECT ON points, pace TO " + role}) {
    ASSERT_TRUE(source_->Execute(statement, nullptr, {}).ok()) << statement;
  }
  LocalCluster cluster(Machine(8));
  RecordingSink sink;
  Status status;
  bool told = false;
  {
    const auto few = catalog::OpenDataSource(UrlBy(role, 0)).value();
    catalog_ = catalog::OpenCatalog(UrlBy(role, 0)).value();
    const std::jthread fault([&](const std::stop_token& stop) {
      const auto has = [&](const std::string& what) {
        const auto events = catalog_->jobs().Events(1);
        return events.ok() && std::any_of(events->begin(), events->end(), [&](const auto& event) {
                 return event.kind == what || event.detail.find(what) != std::string::npos;
               });
      };
      // While those that are connected read, the others try in vain.
      EXPECT_TRUE(Eventually([&] { return stop.stop_requested() || has("workers_granted"); }));
      EXPECT_TRUE(source_->Execute("SELECT setval('pace', 1)", nullptr, {}).ok());
      told = Eventually([&] { return stop.stop_requested() || has("too many connections"); });
      EXPECT_TRUE(source_->Execute("SELECT setval('pace', 0)", nullptr, {}).ok());
    });
    status =
        Run("SELECT paced(i, a) AS a, b, y FROM points TO TRAIN DNNClassifier WITH "
            "model.hidden_units=[8], engine.seed=5, engine.num_workers=8, "
            "engine.max_workers=8, engine.num_ps=1, train.epoch=20 LABEL y INTO m",
            cluster, *few, sink);
  }
  EXPECT_TRUE(status.ok()) << status.ToString() << ::testing::PrintToString(Events(1));
  EXPECT_TRUE(told);
  EXPECT_THAT(Events(1), Contains(HasSubstr("too many connections")));
  EXPECT_EQ(Count(1, "task_failed"), 0);
  EXPECT_EQ(Count(1, "worker_lost"), 0) << ::testing::PrintToString(Events(1));
  catalog_.reset();
  ASSERT_TRUE(source_->Execute("DROP OWNED BY " + role + " CASCADE", nullptr, {}).ok());
  EXPECT_TRUE(source_->Execute("DROP ROLE " + role, nullptr, {}).ok());
}

}  // namespace
}  // namespace sluice::executor
