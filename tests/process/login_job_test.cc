#include <gmock/gmock.h>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

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
        const Status done = source_->Execute(sql, nullptr, {}).status();
        EXPECT_TRUE(done.ok()) << sql << "\n" << done.ToString();
      }
    }
    ClusterJobs::TearDown();
  }

  // Whether the text is in what the process may write of its memory, or in its environment.
  static bool Remembers(int pid, const std::string& text) {
    const std::string folder = "/proc/" + std::to_string(pid);
    std::ifstream environment(folder + "/environ", std::ios::binary);
    if (std::string(std::istreambuf_iterator<char>(environment), {}).find(text) !=
        std::string::npos) {
      return true;
    }
    std::ifstream maps(folder + "/maps");
    std::ifstream memory(folder + "/mem", std::ios::binary);
    EXPECT_TRUE(maps && memory) << pid << " has ended";
    for (std::string line; std::getline(maps, line);) {
      uint64_t begin = 0, end = 0;
      char may_write = '-';
      if (std::sscanf(line.c_str(), "%lx-%lx r%c", &begin, &end, &may_write) != 3 ||
          may_write != 'w') {
        continue;
      }
      std::string bytes;
      constexpr uint64_t kPiece = 1 << 20;
      for (uint64_t at = begin; at < end; at += kPiece) {
        bytes.erase(0, bytes.size() - std::min(bytes.size(), text.size()));
        const size_t kept = bytes.size();
        bytes.resize(kept + std::min(kPiece, end - at));
        memory.clear();
        memory.seekg(static_cast<std::streamoff>(at));
        memory.read(&bytes[kept], static_cast<std::streamsize>(bytes.size() - kept));
        bytes.resize(kept + static_cast<size_t>(memory.gcount()));
        if (bytes.find(text) != std::string::npos) {
          return true;
        }
      }
    }
    return false;
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
  ASSERT_TRUE(Eventually([&] { return Count(1, "epoch_done") > 0; }));
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

// Programs of users run among these processes.
TEST_F(LoginJobs, NoProcessOfAJobKnowsTheGatewaysPassword) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root reads the memory of other processes";
  }
  const std::string gateways = "gateway_of_" + role_, password = "known-to-the-gateway-" + role_;
  for (const std::string& sql :
       {"CREATE ROLE " + gateways + " LOGIN PASSWORD '" + password + "' IN ROLE " +
            testing::kPasswordRole,
        "DO $$ BEGIN EXECUTE 'GRANT CREATE ON DATABASE ' || current_database() || ' TO " +
            gateways + "'; END $$"}) {
    ASSERT_TRUE(source_->Execute(sql, nullptr, {}).ok()) << sql;
  }
  const std::string url = "postgresql://" + gateways + Url().substr(Url().find('@'));
  const ShellOutcome set_up = RunInShell(std::string(SLUICE_BINARY) + " setup --source '" + url +
                                         "' | psql -X -q -v ON_ERROR_STOP=1 '" + Url() + "' 2>&1");
  ASSERT_EQ(set_up.exit_code, 0) << set_up.output;
  for (const std::string& serve :
       {"PGPASSWORD=" + password + " exec " + SLUICE_BINARY + " serve --source " + url,
        "exec " + std::string(SLUICE_BINARY) + " serve --source postgresql://" + gateways + ":" +
            password + Url().substr(Url().find('@'))}) {
    BackgroundProcess gateway(serve + " --grpc 127.0.0.1:0 --slots 8");
    const std::string greeting = gateway.ReadLine();
    ASSERT_THAT(greeting, HasSubstr("gRPC on "));
    const std::string client = "PGPASSWORD=s3cret " + std::string(SLUICE_BINARY) +
                               " sql --gateway " + role_ + "@" +
                               greeting.substr(greeting.find("on ") + 3) + " --format csv -c \"";
    const ShellOutcome begun = RunInShell(
        client + "SET sluice.async = on; " +
        TrainText("m", "train.epoch=1000, engine.num_workers=2, engine.num_ps=1") + "\" 2>&1");
    ASSERT_THAT(begun.output, HasSubstr(",RUNNING,WAIT JOB ")) << begun.output;
    const int64_t job = Ask("SELECT max(id) FROM sluice.jobs");
    const std::string of_job = " WHERE job_id = " + std::to_string(job);
    ASSERT_TRUE(Eventually([&] {
      return Ask("SELECT count(*) FROM sluice.job_events" + of_job +
                 " AND kind = 'worker_started'") == 2;
    }));
    std::vector<int> processes = {
        static_cast<int>(Ask("SELECT pid FROM sluice.job_runners" + of_job))};
    for (const auto& [parent, pid] : Children()) {
      if (parent == processes[0]) {
        processes.push_back(pid);
      }
    }
    EXPECT_GE(processes.size(), 5U) << "the job's own, a master, two workers, a server";
    EXPECT_TRUE(Remembers(gateway.pid(), password)) << "or the test would find nothing anywhere";
    for (const int process : processes) {
      EXPECT_FALSE(Remembers(process, password));
    }
    const ShellOutcome ended = RunInShell(client + "CANCEL JOB " + std::to_string(job) +
                                          "; WAIT JOB " + std::to_string(job) + "\" 2>&1");
    EXPECT_THAT(ended.output, HasSubstr("cancelled"));
  }
  RunInShell("psql -X -q '" + Url() + "' -c 'DROP OWNED BY " + gateways +
             " CASCADE' -c 'DROP SCHEMA IF EXISTS sluice CASCADE' -c 'DROP ROLE " + gateways +
             "' 2>&1");
}

}  // namespace
}  // namespace sluice::executor
