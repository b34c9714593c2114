#pragma once

#include <gmock/gmock.h>
#include <spawn.h>
#include <sys/wait.h>

#include <csignal>
#include <random>

#include "catalog/model_store.h"
#include "elastic/storage/checkpoint.h"
#include "tests/process/cluster_job.h"

extern char** environ;  // NOLINT: POSIX declares it nowhere

namespace sluice::executor {

// Gateways of the real binary are killed with all of their processes, and the same statement is run
// again.
class KilledGateway : public ClusterJobs {
 protected:
  std::string Folder() const { return (folder_ / "checkpoints").string(); }
  std::string Saved(const std::string& attributes, int epochs = 12) const {
    return "train.epoch=" + std::to_string(epochs) +
           ", train.save_checkpoints_steps=10, engine.seed=5, engine.checkpoint_dir='" + Folder() +
           "', " + attributes;
  }
  pid_t Start(const std::string& train) const {
    std::string binary = SLUICE_BINARY, command = "sql", source = "--source=" + Url(),
                sql = "--command=" + train;
    char* arguments[] = {binary.data(), command.data(), source.data(), sql.data(), nullptr};
    pid_t gateway = 0;
    EXPECT_EQ(posix_spawn(&gateway, binary.c_str(), nullptr, nullptr, arguments, environ), 0);
    return gateway;
  }
  static bool Ended(pid_t gateway) { return waitpid(gateway, nullptr, WNOHANG) == gateway; }
  static std::vector<int> SignalAll(pid_t gateway, int signal) {
    std::vector<int> all = {gateway};
    for (const auto& [parent, pid] : Children()) {
      if (parent == gateway) {
        all.push_back(pid);
      }
    }
    for (int pid : all) {
      kill(pid, signal);
    }
    return all;
  }
  // All at once: gateway, master, servers, workers.
  static void KillAll(pid_t gateway) {
    const std::vector<int> all = SignalAll(gateway, SIGKILL);
    waitpid(gateway, nullptr, 0);
    EXPECT_TRUE(Eventually([&all] {
      const auto alive = Children();
      return std::none_of(alive.begin(), alive.end(), [&all](const auto& process) {
        return std::find(all.begin(), all.end(), process.second) != all.end();
      });
    }));
  }
  static int MasterOf(pid_t gateway) {
    for (const auto& [parent, pid] : Children()) {
      std::ifstream in("/proc/" + std::to_string(pid) + "/cmdline");
      const std::string line(std::istreambuf_iterator<char>(in), {});
      if (parent == gateway && line.find("master") != std::string::npos) {
        return pid;
      }
    }
    return 0;
  }
  size_t Written() const {
    size_t written = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(Folder(), error)) {
      written += entry.path().filename().string().starts_with("checkpoint-") ? 1 : 0;
    }
    return written;
  }
  // The cut that the next run continues from.
  uint64_t NewestCut() const {
    const auto directory = elastic::CheckpointDirectory::Open(Folder(), 0);
    EXPECT_TRUE(directory.ok()) << directory.status().ToString();
    const auto newest = directory->Newest();
    EXPECT_TRUE(newest.ok()) << newest.status().ToString();
    EXPECT_TRUE(newest->has_value()) << "a kill has cost the checkpoints before it";
    return newest.ok() && newest->has_value() ? (*newest)->manifest.cut : 0;
  }
  std::string Weights(const std::string& model) const {
    const catalog::ModelVersion version = catalog_->models().Find("", model, std::nullopt).value();
    return catalog_->models().LoadWeights(version).value();
  }
  void RunWithKills(const std::string& model, const std::string& attributes, int epochs) {
    RunWithKills(TrainText(model, Saved(attributes, epochs)));
  }
  // Kills the statement twice at random moments, then lets it finish.
  void RunWithKills(const std::string& train) {
    constexpr int kKills = 2;
    std::mt19937 random(7);
    uint64_t cut = 0;
    for (int i = 0; i < kKills; ++i) {
      const pid_t gateway = Start(train);
      ASSERT_TRUE(Eventually([&] { return Written() > 0; }));
      std::this_thread::sleep_for(std::chrono::milliseconds(random() % 400));
      ASSERT_FALSE(Ended(gateway)) << "nothing is left to be killed: train for longer";
      KillAll(gateway);
      const uint64_t newest = NewestCut();
      EXPECT_GE(newest, cut);
      cut = newest;
    }
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    const Status status = Run(train, cluster, *source_, sink);
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_THAT(sink.notices,
                ::testing::Contains(::testing::StartsWith("the training goes on from step ")));
    EXPECT_EQ(Written(), 0U) << "a finished job leaves no checkpoints";
    const std::vector<catalog::Job> jobs = catalog_->jobs().List().value();
    EXPECT_EQ(jobs.front().state, catalog::JobState::kSucceeded);
  }
};

}  // namespace sluice::executor
