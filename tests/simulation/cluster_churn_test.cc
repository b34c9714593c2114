// Clusters in which everything changes at once: after every step nothing holds more than it has,
// and when the changes end, everybody has their share and nothing moves any more.
#include <gtest/gtest.h>

#include <random>

#include "tests/simulation/cluster_world.h"

namespace sluice::elastic {
namespace {

constexpr int64_t kGibibyte = int64_t{1} << 30;
constexpr uint64_t kSeeds = 12;
constexpr int kChurnSeconds = 300;
constexpr int kQuietSeconds = 90;

class Churn {
 public:
  explicit Churn(uint64_t seed) : random_(seed), world_(Options(seed)) {
    for (int i = 0; i < 12; ++i) {
      world_.AddNode(NodeName(i), NodeCapacity());
      there_.push_back(true);
    }
  }

  uint64_t suspensions() const { return world_.suspensions(); }

  // An empty text, or what is wrong.
  std::string Run() {
    for (int second = 0; second < kChurnSeconds; ++second) {
      Disturb(second);
      if (std::string wrong = Pass(); !wrong.empty()) {
        return wrong;
      }
    }
    Repair();
    uint64_t starts = 0, suspended = 0;
    for (int second = 0; second < kQuietSeconds; ++second) {
      if (second == kQuietSeconds / 2) {
        starts = world_.starts();
        suspended = world_.suspensions();
      }
      if (std::string wrong = Pass(); !wrong.empty()) {
        return wrong;
      }
    }
    if (world_.starts() != starts) {
      return "workers are still being started without any change";
    }
    if (world_.suspensions() != suspended) {
      return "jobs are still being suspended without any change";
    }
    return CheckShares();
  }

 private:
  static WorldOptions Options(uint64_t seed) {
    WorldOptions options;
    options.seed = seed;
    options.step_seconds = 0.5;
    options.placing =
        seed % 2 == 0 ? WorldOptions::Placing::kScheduler : WorldOptions::Placing::kPlanned;
    return options;
  }
  static std::string NodeName(int i) { return "n" + std::to_string(i); }
  static Capacity NodeCapacity() { return {8, 64 * kGibibyte, 0}; }
  bool OneIn(int n) { return random_() % static_cast<uint64_t>(n) == 0; }

  std::string Pass() {
    const double until = world_.now() + 1;
    while (world_.now() < until) {
      world_.Step();
      if (std::string wrong = world_.Broken(); !wrong.empty()) {
        return wrong;
      }
    }
    return "";
  }

  void Disturb(int second) {
    if (OneIn(20) && world_.jobs() < 40) {
      WorldJob job;
      job.min = OneIn(20) ? 500 : 1 + static_cast<uint32_t>(random_() % 4);  // 500: for ever
      job.max = job.min + static_cast<uint32_t>(random_() % 30);
      job.priority = static_cast<int>(random_() % 3);
      job.servers = static_cast<uint32_t>(random_() % 3);
      job.server = {OneIn(3) ? 5.0 : 0.5, kGibibyte, 0};
      job.worker = {OneIn(3) ? 2.0 : 1.0, kGibibyte, 0};
      job.work = OneIn(2) ? 200 + static_cast<double>(random_() % 2'000)
                          : std::numeric_limits<double>::infinity();
      job.can_suspend = OneIn(2);
      world_.AddJob(job);
    }
    if (OneIn(60) && world_.jobs() > 0) {
      world_.EndJob(random_() % world_.jobs());
    }
    if (OneIn(15)) {
      world_.SetService("web", {1.5, kGibibyte, 0}, static_cast<uint32_t>(random_() % 30),
                        std::nullopt);
    }
    if (OneIn(10)) {
      world_.KillWorker();
    }
    const int node = static_cast<int>(random_() % there_.size());
    if (OneIn(40) && there_[static_cast<size_t>(node)]) {
      world_.LoseNode(NodeName(node));
      there_[static_cast<size_t>(node)] = false;
    } else if (OneIn(20) && !there_[static_cast<size_t>(node)]) {
      world_.AddNode(NodeName(node), NodeCapacity());
      there_[static_cast<size_t>(node)] = true;
    }
    // One flaps.
    world_.SetNode(NodeName(3), second % 4 < 2, OneIn(4));
  }

  void Repair() {
    for (size_t i = 0; i < there_.size(); ++i) {
      if (!there_[i]) {
        world_.AddNode(NodeName(static_cast<int>(i)), NodeCapacity());
      }
      world_.SetNode(NodeName(static_cast<int>(i)), false, false);
    }
    world_.SetService("web", {1.5, kGibibyte, 0}, 0, std::nullopt);
    // What is left has no end, so that what moves does not move for it.
    for (size_t job = 0; job < world_.jobs(); ++job) {
      if (world_.job(job).work < 1e9) {
        world_.EndJob(job);
      }
    }
  }

  // A job has its smallest number, unless jobs that come first leave too little room for it.
  std::string CheckShares() const {
    double free = world_.TotalCpu() - world_.UsedCpu();
    for (size_t job = 0; job < world_.jobs(); ++job) {
      const WorldJob& described = world_.job(job);
      const uint32_t workers = world_.Workers(job);
      if (world_.fates()[job].ended) {
        continue;
      }
      if (workers > 0 && workers < described.min) {
        return "job " + std::to_string(job) + " runs with fewer than its smallest number";
      }
      const double needs =
          described.min * described.worker.cpu + described.servers * described.server.cpu;
      if (workers == 0 && needs + 16 < free) {
        return "job " + std::to_string(job) + " starves beside free room";
      }
    }
    return "";
  }

  std::mt19937_64 random_;
  ClusterWorld world_;
  std::vector<bool> there_;
};

TEST(ClusterChurn, NothingIsBrokenAndEverythingSettles) {
  uint64_t suspensions = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Churn churn(seed);
    EXPECT_EQ(churn.Run(), "") << "seed " << seed;
    suspensions += churn.suspensions();
  }
  EXPECT_GT(suspensions, 0U);
}

}  // namespace
}  // namespace sluice::elastic
