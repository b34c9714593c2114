// The controller in a whole cluster: over the fake API server and a played scheduler, over a real
// API server, and beside the real scheduler (`scripts/kubernetes with --controllers COMMAND`).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <thread>

#include "k8s/controller.h"
#include "tests/elastic/fleet/sharing_cases.h"
#include "tests/k8s/played_cluster.h"
#include "tests/k8s/tested_api_server.h"

namespace sluice::k8s {
namespace {

enum class Kind { kFake, kReal, kRealScheduler };

class ControllerContract : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (GetParam() != Kind::kFake && !TestedApiServer::HasReal()) {
      GTEST_SKIP() << "needs a Kubernetes API server: SLUICE_TEST_KUBERNETES";
    }
    if (GetParam() == Kind::kRealScheduler && !TestedApiServer::HasScheduler()) {
      GTEST_SKIP() << "needs a scheduler: scripts/kubernetes with --controllers";
    }
    server_ = std::make_unique<TestedApiServer>(GetParam() != Kind::kFake);
    cluster_ = std::make_unique<PlayedCluster>(*server_, GetParam() == Kind::kRealScheduler
                                                             ? PlayedCluster::Scheduler::kReal
                                                             : PlayedCluster::Scheduler::kPlayed);
  }
  void Start() {
    controller_ = std::make_unique<Controller>(
        server_->client(),
        ControllerOptions{server_->namespace_name(), "one", {.hysteresis_seconds = 0.5}});
    thread_ =
        std::jthread([this](const std::stop_token& stop) { status_ = controller_->Run(stop); });
  }
  void TearDown() override {
    thread_ = {};  // ends the controller
    EXPECT_TRUE(status_.ok()) << status_.ToString();
    cluster_.reset();
    controller_.reset();
  }
  // Lets a tenth of a second pass, quicker on the fake server.
  void Pass() {
    cluster_->Turn();
    server_->clock().Advance(std::chrono::milliseconds(100));
    std::this_thread::sleep_for(std::chrono::milliseconds(GetParam() == Kind::kFake ? 3 : 100));
  }
  // Returns the seconds that it took. A wait in vain fails the test.
  template <class Condition>
  double Until(const Condition& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    int passes = 0;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "waited in vain for two minutes";
        break;
      }
      Pass();
      ++passes;
    }
    return passes / 10.0;
  }
  void Settle() {
    for (int i = 0; i < 30; ++i) {
      Pass();
    }
  }
  bool Have(uint32_t a, uint32_t b) {
    return cluster_->Workers("a") == a && cluster_->Workers("b") == b;
  }

  std::unique_ptr<TestedApiServer> server_;
  std::unique_ptr<PlayedCluster> cluster_;
  std::unique_ptr<Controller> controller_;
  Status status_;
  std::jthread thread_;
};

TEST_P(ControllerContract, EqualJobsShareWhatIsIdleAndAServiceComesFirst) {
  cluster_->AddNode("n1", 4);
  cluster_->AddNode("n2", 4);
  cluster_->AddJob("a", 1, 8);
  cluster_->AddJob("b", 1, 8);
  Start();
  Until([&] { return Have(4, 4); });
  cluster_->AddService("web", 2);
  const double waited = Until([&] { return cluster_->Runs("web"); });
  EXPECT_LT(waited, 10) << "on a busy machine; the goal is 3 s";
  std::printf("service up after %.1f s\n", waited);
  Until([&] { return Have(3, 3); });
  Settle();
  EXPECT_TRUE(Have(3, 3)) << "it stays so";
  // The real scheduler may preempt workers before the grants say that each job has one fewer. Their
  // masters start them again at once, and, if both were of one job, one more when the other job has
  // given a worker up for it.
  EXPECT_LE(cluster_->StartedWorkers("a") + cluster_->StartedWorkers("b"),
            8 + 2 * (cluster_->PreemptedWorkers("a") + cluster_->PreemptedWorkers("b")))
      << "nothing else is started that has to go again";
  if (GetParam() != Kind::kRealScheduler) {
    EXPECT_EQ(cluster_->PreemptedWorkers("a") + cluster_->PreemptedWorkers("b"), 0U);
  }
  cluster_->EndService("web");
  std::printf("its room is used after %.1f s\n", Until([&] { return Have(4, 4); }));
}

TEST_P(ControllerContract, ANodeThatComesIsUsedAndOneThatGoesTakesItsWorkers) {
  cluster_->AddNode("n1", 3);
  cluster_->AddJob("a", 1, 8);
  Start();
  Until([&] { return cluster_->Workers("a") == 3; });
  cluster_->AddNode("n2", 2);
  std::printf("a new node is used after %.1f s\n",
              Until([&] { return cluster_->Workers("a") == 5; }));
  cluster_->Cordon("n2", true);
  Settle();
  EXPECT_EQ(cluster_->Workers("a"), 5U) << "what runs there stays";
}

TEST_P(ControllerContract, AJobBelowItsMinimumWaitsAndStartsAsAWhole) {
  cluster_->AddNode("n1", 4);
  cluster_->AddJob("a", 1, 3);
  Start();
  Until([&] { return cluster_->Workers("a") == 3; });
  cluster_->AddJob("b", 4, 8);
  Until([&] { return cluster_->GrantOf("b").has_value(); });
  Settle();
  EXPECT_EQ(cluster_->GrantOf("b")->workers, 0U);
  EXPECT_EQ(cluster_->WaitingWorkers("b"), 0U);
  EXPECT_EQ(cluster_->Workers("a"), 3U);
  cluster_->EndJob("a");
  Until([&] { return cluster_->Workers("b") == 4; });
}

TEST_P(ControllerContract, APodThatNoWorkerCouldHelpTakesNothing) {
  cluster_->AddNode("n1", 4);
  cluster_->AddJob("a", 1, 4);
  Start();
  Until([&] { return cluster_->Workers("a") == 4; });
  cluster_->AddService("large", 8);
  Settle();
  EXPECT_EQ(cluster_->Workers("a"), 4U);
  EXPECT_FALSE(cluster_->Runs("large"));
}

// The table of cases, each in a cluster of its own.
TEST_P(ControllerContract, SharesAsTheTableOfCasesSays) {
  for (const elastic::SharingCase& each : elastic::SharingCases()) {
    SCOPED_TRACE(each.name);
    TearDown();
    SetUp();
    for (size_t i = 0; i < each.nodes.size(); ++i) {
      cluster_->AddNode(fmt::format("n{}", i), each.nodes[i]);
    }
    Start();
    for (size_t i = 0; i < each.jobs.size(); ++i) {
      const elastic::SharingCase::Job& job = each.jobs[i];
      // The fake server's objects are of one age: their names keep the order.
      cluster_->AddJob(fmt::format("job{}", i), job.min, job.max, job.priority);
      Until([&] { return cluster_->GrantOf(fmt::format("job{}", i)).has_value(); });
    }
    for (size_t i = 0; i < each.services.size(); ++i) {
      const std::string name = fmt::format("service{}", i);
      cluster_->AddService(name, each.services[i]);
      Until([&] { return cluster_->Runs(name); });
    }
    Until([&] {
      for (size_t i = 0; i < each.jobs.size(); ++i) {
        if (cluster_->Workers(fmt::format("job{}", i)) != each.jobs[i].workers) {
          return false;
        }
      }
      return true;
    });
    if (HasFailure()) {
      return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, ControllerContract,
                         testing::Values(Kind::kFake, Kind::kReal, Kind::kRealScheduler),
                         [](const auto& kind) {
                           return kind.param == Kind::kFake   ? "Fake"
                                  : kind.param == Kind::kReal ? "Real"
                                                              : "RealScheduler";
                         });

}  // namespace
}  // namespace sluice::k8s
