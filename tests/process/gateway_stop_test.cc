#include <gmock/gmock.h>

#include <csignal>

#include "tests/process/cluster_job.h"
#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

// SIGTERM to a gateway whose statements plan, stage and train: it ends on its own, and so do its
// processes, the database's queries and its jobs.
namespace sluice::executor {
namespace {

class GatewayStop : public ClusterJobs {
 protected:
  void SetUp() override {
    if (postgres()) {
      if (database_.url().empty()) {
        GTEST_SKIP() << "no PostgreSQL";
      }
      UsePostgres(database_.url());
    } else {
      ClusterJobs::SetUp();
    }
  }
  virtual bool postgres() const { return false; }
  std::string Gateway() const {
    return "exec " + std::string(SLUICE_BINARY) +
           " serve --auth trust --grpc 127.0.0.1:0 --slots 8 --source " + Url();
  }
  static std::string Client(const std::string& address, const std::string& sql) {
    return "exec " + std::string(SLUICE_BINARY) + " sql --gateway " + address + " -c \"" + sql +
           "\" 2>&1";
  }
  // Stops a gateway with two training jobs, and two statements that never get to train.
  void StopWith(const std::string& endless, const std::function<bool()>& plans) {
    BackgroundProcess gateway(Gateway());
    const std::string greeting = gateway.ReadLine();
    const std::string said = "gRPC on ";
    ASSERT_NE(greeting.find(said), std::string::npos) << greeting;
    const std::string from = greeting.substr(greeting.find(said) + said.size());
    const std::string address = from.substr(0, from.find_first_of(" ,;"));
    BackgroundProcess first(Client(
        address, TrainText("m", "train.epoch=100000, engine.num_workers=2, engine.num_ps=2")));
    BackgroundProcess second(Client(
        address,
        TrainText("n", "train.epoch=100000, engine.num_workers=2, engine.strategy='allreduce'")));
    ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") + Count(2, "epoch_done") > 0; }));
    BackgroundProcess third(Client(address, endless + " TO TRAIN LinearClassifier LABEL y INTO o"));
    BackgroundProcess fourth(Client(address, endless + " TO EVALUATE m"));
    ASSERT_TRUE(Eventually(plans));
    std::vector<int> processes;
    const std::vector<catalog::Job> running = catalog_->jobs().Running().value();
    for (const catalog::Job& job : running) {
      for (const auto& [parent, pid] : Children()) {
        if (job.runner.pid != gateway.pid() && parent == job.runner.pid) {
          processes.push_back(pid);
        }
      }
    }
    EXPECT_GE(processes.size(), 2U);
    kill(gateway.pid(), SIGTERM);
    int status = 0;
    ASSERT_TRUE(Eventually([&] { return waitpid(gateway.pid(), &status, WNOHANG) != 0; }));
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
    const auto alive = Children();
    for (const int process : processes) {
      EXPECT_TRUE(std::none_of(alive.begin(), alive.end(), [&](const auto& one) {
        return one.second == process;
      })) << "it waits for what it has started";
    }
    // A master that ends properly records it; one that is killed leaves its job to be closed.
    for (const int64_t job : {1, 2}) {
      EXPECT_EQ(catalog_->jobs().Find(job)->state, catalog::JobState::kCancelled)
          << ::testing::PrintToString(Events(job));
      EXPECT_EQ(Count(job, "master_lost"), 0) << ::testing::PrintToString(Events(job));
    }
  }

 private:
  testing::PostgresTestDatabase database_;
};

TEST_F(GatewayStop, EndsWhatItsStatementsDo) {
  // Whether SQLite computes cannot be seen from outside; a client that gets no answer waits.
  int looks = 0;
  StopWith(
      "SELECT v AS a, v AS y FROM (WITH RECURSIVE s(v) AS (VALUES (1) UNION ALL SELECT v + 1 "
      "FROM s) SELECT v FROM s) WHERE v < 0",
      [&looks] { return ++looks > 50; });
}

class GatewayStopPostgres : public GatewayStop {
 protected:
  bool postgres() const override { return true; }
  int64_t Asked(const std::string& what) const {
    return Ask(
        "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
        "current_database() AND " +
        what);
  }
};

TEST_F(GatewayStopPostgres, EndsWhatItsStatementsDo) {
  const std::string sleeping = "wait_event = 'PgSleep'";
  StopWith("SELECT a, y FROM points, (SELECT pg_sleep(3600)) AS s",
           [&] { return Asked(sleeping) >= 1; });
  EXPECT_TRUE(Eventually([&] { return Asked(sleeping) == 0; }));
  EXPECT_TRUE(Eventually([&] { return Asked("application_name LIKE 'sluice%'") <= 1; }))
      << "the test's own";
}

// Its door closes after that; a job on pods would be cancelled by a client that goes first.
TEST_F(GatewayStopPostgres, AClientOfThePostgresPortHearsHowItsStatementEnds) {
  BackgroundProcess gateway(Gateway() + " --pg 127.0.0.1:0");
  const std::string said = "PostgreSQL on 127.0.0.1:";
  std::string greeting = gateway.ReadLine();
  while (greeting.find(said) == std::string::npos && !greeting.empty()) {
    greeting = gateway.ReadLine();
  }
  const std::string from = greeting.substr(greeting.find(said) + said.size());
  const std::string port = from.substr(0, from.find_first_not_of("0123456789"));
  const std::string name = Url().substr(Url().rfind('/') + 1);
  BackgroundProcess client("exec psql -h 127.0.0.1 -p " + port + " -U postgres -d " + name +
                           " -X -c \"" +
                           TrainText("m", "train.epoch=100000, engine.num_workers=2") + "\" 2>&1");
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") > 0; }));
  kill(gateway.pid(), SIGTERM);
  std::string heard;
  for (std::string line = client.ReadLine(); !line.empty(); line = client.ReadLine()) {
    heard += line;
  }
  EXPECT_THAT(heard, ::testing::HasSubstr("the training was cancelled"));
}

}  // namespace
}  // namespace sluice::executor
