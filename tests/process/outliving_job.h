#pragma once

#include <gmock/gmock.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/cluster_job.h"
#include "tests/server/sluice_process.h"

namespace sluice::executor {

// Jobs in processes of their own: gateways, clients and the jobs' own processes are really killed.
class OutlivingJobs : public ClusterJobs {
 protected:
  // Long enough to be interrupted in the middle on any machine; StillRuns tells that it was.
  static constexpr int kEpochs = 10;

  void TearDown() override {
    if (catalog_ != nullptr) {
      const std::vector<catalog::Job> running = catalog_->jobs().Running().value();
      for (const catalog::Job& job : running) {  // left by a test that failed
        if (job.runner.pid > 0) {
          kill(static_cast<pid_t>(job.runner.pid), SIGKILL);
        }
      }
    }
    gateway_.reset();
    ClusterJobs::TearDown();
  }

  void StartGateway(const std::string& options = "--slots 8") {
    gateway_ = std::make_unique<BackgroundProcess>("exec " + std::string(SLUICE_BINARY) +
                                                   " serve --auth trust --grpc 127.0.0.1:0 " +
                                                   options + " --source " + Url());
    const std::string greeting = gateway_->ReadLine();
    ASSERT_THAT(greeting, ::testing::HasSubstr("gRPC on "));
    const std::string from = greeting.substr(greeting.find("on ") + 3);
    address_ = from.substr(0, from.find_first_of(" ,;"));
  }
  std::string Client(const std::string& sql) const {
    return std::string(SLUICE_BINARY) + " sql --gateway " + address_ + " --format csv -c \"" + sql +
           "\" 2>&1";
  }
  ShellOutcome Ask(const std::string& sql) const { return RunInShell(Client(sql)); }
  // In this process's own shell, without a gateway.
  ShellOutcome AskEmbedded(const std::string& sql) const {
    return RunInShell(std::string(SLUICE_BINARY) + " sql --source " + Url() +
                      " --format csv -c \"" + sql + "\" 2>&1");
  }
  static std::string Long(const std::string& model, const std::string& attributes,
                          int epochs = kEpochs) {
    return TrainText(
        model, "split.kind='none', train.epoch=" + std::to_string(epochs) + ", " + attributes);
  }
  static std::string Fleet() { return "engine.num_workers=2, engine.num_ps=2"; }

  // The process that runs the job; 0: none.
  pid_t ProcessOf(int64_t id) const {
    const std::vector<catalog::Job> running = catalog_->jobs().Running().value();
    for (const catalog::Job& job : running) {
      if (job.id == id) {
        return static_cast<pid_t>(job.runner.pid);
      }
    }
    return 0;
  }
  // Fails if there is none: 0 would mean this process's whole group.
  static void Signal(pid_t process, int signal) {
    ASSERT_GT(process, 0) << "it has ended already";
    EXPECT_EQ(kill(process, signal), 0);
  }
  static bool Lives(pid_t pid) {
    std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return static_cast<bool>(in >> number >> name >> state) && state != "Z";
  }
  bool HasBegun(int64_t job) const {
    return Eventually([&] { return Count(job, "epoch_done") > 0; });
  }
  bool StillRuns(int64_t job) const { return StateOf(job) == catalog::JobState::kRunning; }
  catalog::JobState StateOf(int64_t job) const { return catalog_->jobs().Find(job)->state; }
  // The result as the next gateway shows it.
  void ExpectWhole(int64_t job, const std::string& model, int epochs = kEpochs) const {
    const ShellOutcome waited = Ask("WAIT JOB " + std::to_string(job));
    EXPECT_EQ(waited.exit_code, 0) << waited.output;
    EXPECT_THAT(waited.output, ::testing::HasSubstr("\n" + model + ",1," + std::to_string(job) +
                                                    ",DNNClassifier," + std::to_string(kRows) +
                                                    "," + std::to_string(epochs) + ","));
    EXPECT_EQ(StateOf(job), catalog::JobState::kSucceeded);
    EXPECT_EQ(catalog_->jobs().Find(job)->rows_trained, kRows * epochs);
    EXPECT_THAT(Ask("SHOW MODELS").output, ::testing::HasSubstr("\n" + model + ",1,"));
  }

  std::unique_ptr<BackgroundProcess> gateway_;
  std::string address_;
};

}  // namespace sluice::executor
