#include <gmock/gmock.h>

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "tests/process/cluster_job.h"
#include "tests/server/sluice_process.h"
#include "tests/support/postgres_server.h"

// A job on processes that a user of a gateway began: its workers log in as that user, and its
// master writes as the gateway.
namespace sluice::executor {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class LoginJobs : public ClusterJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_.url());
    role_ = "ann_" + database_.url().substr(database_.url().rfind('_') + 1);
    const std::string group = testing::kPasswordRole;
    for (const std::string& sql :
         {"DO $$ BEGIN CREATE ROLE " + group +
              " LOGIN; EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$",
          "CREATE ROLE " + role_ + " LOGIN PASSWORD 's3cret' IN ROLE " + group,
          std::string("ALTER TABLE points ENABLE ROW LEVEL SECURITY"),
          "CREATE POLICY half ON points TO " + role_ + " USING (i % 2 = 0)",
          "GRANT SELECT ON points TO " + role_}) {
      const Status done = source_->Execute(sql, nullptr, {}).status();
      ASSERT_TRUE(done.ok()) << sql << "\n" << done.ToString();
    }
    if (catalog::OpenDataSourceAs(database_.url(), role_, "s3cret").status().sqlstate() ==
        "28000") {
      GTEST_SKIP() << "the server's pg_hba.conf does not ask members of " << group;
    }
  }
  void TearDown() override {
    if (!role_.empty()) {
      for (const std::string& sql : {"DROP OWNED BY " + role_ + " CASCADE", "DROP ROLE " + role_}) {
        EXPECT_TRUE(source_->Execute(sql, nullptr, {}).ok()) << sql;
      }
    }
    ClusterJobs::TearDown();
  }

  testing::PostgresTestDatabase database_;
  std::string role_;
};

TEST_F(LoginJobs, WorkersReadAsTheUserAndTheMasterWritesForThem) {
  BackgroundProcess gateway("exec " + std::string(SLUICE_BINARY) +
                            " serve --grpc 127.0.0.1:0 --slots 8 --source " + Url());
  const std::string greeting = gateway.ReadLine();
  ASSERT_THAT(greeting, HasSubstr("gRPC on "));
  const std::string address = greeting.substr(greeting.find("on ") + 3);
  const auto run = [&](const std::string& sql) {
    return RunInShell("PGPASSWORD=s3cret " + std::string(SLUICE_BINARY) + " sql --gateway " +
                      role_ + "@" + address + " --format csv -c \"" + sql + "\" 2>&1");
  };
  const ShellOutcome trained = run(TrainText(
      "m", "split.kind='none', train.epoch=2, engine.num_workers=2, engine.max_workers=2"));
  ASSERT_EQ(trained.exit_code, 0) << trained.output;
  EXPECT_THAT(trained.output, HasSubstr("," + std::to_string(kRows / 2) + ","))
      << "the rows that the role sees";
  EXPECT_THAT(trained.output, Not(HasSubstr("s3cret")));
  EXPECT_EQ(Ask("SELECT count(*) FROM sluice.models WHERE owner::text = '" + role_ + "'"), 1);
  EXPECT_EQ(Ask("SELECT count(*) FROM sluice.jobs WHERE owner::text = '" + role_ + "'"), 1);
  EXPECT_EQ(Count(1, "worker_started"), 2);
  // ~/.pgpass, with the gateway's own address.
  const std::string file = ::testing::TempDir() + "/pgpass_" + role_;
  const ShellOutcome found =
      RunInShell("umask 077; echo '" + address + ":*:*:s3cret' > " + file + "; PGPASSFILE=" + file +
                 " " + SLUICE_BINARY + " sql --gateway " + address + " --user " + role_ +
                 " --format csv -c 'SELECT current_user' 2>&1");
  std::filesystem::remove(file);
  EXPECT_THAT(found.output, HasSubstr(role_));
  const ShellOutcome wrong =
      RunInShell("PGPASSWORD=wrong " + std::string(SLUICE_BINARY) + " sql --gateway " + role_ +
                 "@" + address + " -c 'SELECT 1' 2>&1");
  EXPECT_NE(wrong.exit_code, 0);
  EXPECT_THAT(wrong.output, HasSubstr("password authentication failed"));
}

// It outlives the gateway that knew the password.
TEST_F(LoginJobs, AJobOfItsOwnReadsAsTheUser) {
  auto gateway =
      std::make_unique<BackgroundProcess>("exec " + std::string(SLUICE_BINARY) +
                                          " serve --grpc 127.0.0.1:0 --slots 8 --source " + Url());
  const std::string greeting = gateway->ReadLine();
  ASSERT_THAT(greeting, HasSubstr("gRPC on "));
  const ShellOutcome begun = RunInShell(
      "PGPASSWORD=s3cret " + std::string(SLUICE_BINARY) + " sql --gateway " + role_ + "@" +
      greeting.substr(greeting.find("on ") + 3) + " --format csv -c \"SET sluice.async = on; " +
      TrainText("m", "split.kind='none', train.epoch=10, engine.num_workers=2") + "\" 2>&1");
  EXPECT_THAT(begun.output, HasSubstr("1,RUNNING,WAIT JOB 1"));
  const std::vector<catalog::Job> running = catalog_->jobs().Running().value();
  ASSERT_EQ(running.size(), 1U);
  const std::string process = "/proc/" + std::to_string(running[0].runner.pid);
  std::ifstream cmdline(process + "/cmdline");
  EXPECT_THAT(std::string(std::istreambuf_iterator<char>(cmdline), {}), Not(HasSubstr("s3cret")));
  kill(gateway->pid(), SIGKILL);
  gateway.reset();
  ASSERT_TRUE(
      Eventually([&] { return catalog_->jobs().Find(1)->state != catalog::JobState::kRunning; }));
  const catalog::Job job = catalog_->jobs().Find(1).value();
  EXPECT_EQ(job.state, catalog::JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.rows_trained, kRows / 2 * 10) << "the rows that the role sees";
  EXPECT_EQ(Ask("SELECT count(*) FROM sluice.jobs WHERE owner::text = '" + role_ + "'"), 1);
}

// Its secret is gone with the processes that had it.
TEST_F(LoginJobs, AKilledJobWaitsForItsOwnerToLogIn) {
  const auto start = [this](std::string* address) {
    auto gateway = std::make_unique<BackgroundProcess>(
        "exec " + std::string(SLUICE_BINARY) + " serve --grpc 127.0.0.1:0 --slots 8 --source " +
        Url());
    const std::string greeting = gateway->ReadLine();
    *address = greeting.substr(greeting.find("on ") + 3);
    return gateway;
  };
  const auto run = [this](const std::string& address, const std::string& sql) {
    return RunInShell("PGPASSWORD=s3cret " + std::string(SLUICE_BINARY) + " sql --gateway " +
                      role_ + "@" + address + " --format csv -c \"" + sql + "\" 2>&1");
  };
  constexpr int kLong = 40;  // epochs: more than the job does before it is killed
  std::string address;
  auto gateway = start(&address);
  const ShellOutcome begun =
      run(address, "SET sluice.async = on; " +
                       TrainText("m", "split.kind='none', train.epoch=" + std::to_string(kLong) +
                                          ", engine.num_workers=2"));
  ASSERT_THAT(begun.output, HasSubstr("1,RUNNING,WAIT JOB 1"));
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") > 0; }, 60));
  const auto process = static_cast<pid_t>(catalog_->jobs().Running()->at(0).runner.pid);
  kill(gateway->pid(), SIGKILL);
  ASSERT_GT(process, 0) << "the job has ended already";
  kill(process, SIGKILL);
  gateway = start(&address);
  // The administrator sees the reason.
  const std::string admin =
      std::string(SLUICE_BINARY) + " sql --source " + Url() + " --format csv -c 'SHOW JOB 1' 2>&1";
  EXPECT_TRUE(Eventually([&] {
    return RunInShell(admin).output.find("its owner, " + role_ +
                                         ", to log in: its process was "
                                         "lost") != std::string::npos;
  }));
  EXPECT_EQ(Count(1, "taken_over"), 0);
  EXPECT_THAT(RunInShell(admin).output, HasSubstr("job,state,RUNNING"));
  // Any login of its owner will do; the gateway must have looked before.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_EQ(run(address, "SELECT 1").exit_code, 0);
    return Count(1, "taken_over") == 1;
  }));
  const ShellOutcome waited = run(address, "WAIT JOB 1");
  EXPECT_EQ(waited.exit_code, 0) << waited.output;
  const catalog::Job job = catalog_->jobs().Find(1).value();
  EXPECT_EQ(job.state, catalog::JobState::kSucceeded) << job.error;
  EXPECT_EQ(job.rows_trained, kRows / 2 * kLong) << "the rows that the role sees";
}

}  // namespace
}  // namespace sluice::executor
