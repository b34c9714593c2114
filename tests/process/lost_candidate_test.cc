#include <gmock/gmock.h>

#include "tests/process/cluster_job.h"
#include "tests/support/postgres_server.h"

namespace sluice::executor {
namespace {

using ::testing::SizeIs;

// A search in this process over PostgreSQL, whose sessions are terminated as by a failover.
class LostCandidate : public ClusterJobs {
 protected:
  static constexpr const char* kSearch =
      "train.epoch=1, tune.optimizer.learning_rate=[0.0001, 0.1], tune.search='random', "
      "tune.trials=4, tune.seconds=1000, engine.strategy='local', engine.seed=5";

  void SetUp() override {
    if (database_.url().empty()) {
      GTEST_SKIP() << "no PostgreSQL";
    }
    UsePostgres(database_.url());
  }
  std::string Sha(const std::string& model) const {
    return catalog_->models().Find("", model, std::nullopt).value().weights_sha256;
  }
  // Of the candidates that were not passed over.
  std::vector<std::string> Figures(int64_t job) const {
    std::vector<std::string> figures;
    for (const std::string& line : Events(job)) {
      if (line.starts_with("candidate ") && line.find("log_loss ") != std::string::npos) {
        figures.push_back(line);
      }
    }
    return figures;
  }

  testing::PostgresTestDatabase database_;
};

TEST_F(LostCandidate, IsTrainedAgainSoThatTheSameOneWins) {
  LocalCluster cluster(Machine(8));
  RecordingSink undisturbed;
  ASSERT_TRUE(Run(TrainText("u", kSearch), cluster, *Open(), undisturbed).ok());
  const auto other = Open();
  RecordingSink sink;
  std::jthread disturbance;
  sink.on_notice = [&](const std::string& message) {
    if (message.find(": log_loss") == std::string::npos || disturbance.joinable()) {
      return;
    }
    disturbance = std::jthread([&](const std::stop_token& stop) {
      for (int i = 0; i < 200 && !stop.stop_requested(); ++i) {  // for about a second
        const Status done = other
                                ->Execute(
                                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                                    "WHERE datname = current_database() AND state = 'active' "
                                    "AND pid <> pg_backend_pid()",
                                    nullptr, {})
                                .status();
        EXPECT_TRUE(done.ok()) << done.ToString();
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  };
  const Status status = Run(TrainText("m", kSearch), cluster, *Open(), sink);
  disturbance = {};
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(Sha("m"), Sha("u"));
  EXPECT_THAT(Figures(2), SizeIs(4)) << ::testing::PrintToString(sink.notices);
}

}  // namespace
}  // namespace sluice::executor
