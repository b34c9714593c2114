#include <gmock/gmock.h>

#include <csignal>
#include <random>
#include <thread>

#include "catalog/model_store.h"
#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

// Boosted trees on processes: one model, however many they are and whichever of them are killed.
namespace sluice::executor {
namespace {

class TreesJobs : public ClusterJobs {
 protected:
  static std::string TreesText(const std::string& model, const std::string& attributes) {
    return "SELECT a, b, y FROM points TO TRAIN xgboost.gbtree WITH train.num_boost_round=60, "
           "max_depth=5, subsample=0.8, " +
           attributes + " LABEL y INTO " + model;
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt)->weights_sha256;
  }
  // Kills any process of the job, a few times, until it is over.
  static std::jthread KillSome(int kills, uint64_t seed) {
    return std::jthread([kills, seed](const std::stop_token& stop) {
      std::mt19937_64 random(seed);
      for (int killed = 0; killed < kills && !stop.stop_requested();) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 300));
        const auto children = Children();
        const auto [begin, end] = children.equal_range(getpid());
        const auto count = static_cast<uint64_t>(std::distance(begin, end));
        if (count >= 2 && !stop.stop_requested()) {
          killed += kill(std::next(begin, static_cast<std::ptrdiff_t>(random() % count))->second,
                         SIGKILL) == 0
                        ? 1
                        : 0;
        }
      }
    });
  }
  void ExpectOneModel() {
    LocalCluster cluster(Machine(8));
    RecordingSink sink;
    ASSERT_TRUE(Run(TreesText("here", "engine.strategy='local'"), cluster, *source_, sink).ok());
    for (const int workers : {1, 2, 4}) {
      const Status status =
          Run(TreesText("m", "engine.max_workers=4, engine.num_workers=" + std::to_string(workers)),
              cluster, *source_, sink);
      ASSERT_TRUE(status.ok()) << status.ToString();
      EXPECT_EQ(Sha("m"), Sha("here")) << workers;
    }
    for (const uint64_t schedule : {1, 2, 3, 4, 5}) {
      const auto job = static_cast<int64_t>(catalog_->jobs().List().value().size()) + 1;
      const std::jthread killer = KillSome(5, schedule);
      const Status status = Run(TreesText("m", "engine.num_workers=3"), cluster, *source_, sink);
      ASSERT_TRUE(status.ok()) << schedule << ": " << status.ToString();
      EXPECT_EQ(Sha("m"), Sha("here")) << schedule << ::testing::PrintToString(Events(job));
    }
    EXPECT_EQ(ChildrenOf(getpid()), 0);
  }
};

TEST_F(TreesJobs, AreOneModelOnAnyNumberOfProcessesWhicheverAreKilled) {
  ExpectOneModel();
}

class TreesJobsOverPostgres : public TreesJobs {
 protected:
  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_.url());
  }

  testing::PostgresTestDatabase database_;
};

TEST_F(TreesJobsOverPostgres, AreOneModelOnAnyNumberOfProcessesWhicheverAreKilled) {
  ExpectOneModel();
}

}  // namespace
}  // namespace sluice::executor
