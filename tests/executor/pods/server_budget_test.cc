#include "executor/pods/server_budget.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "k8s/api_verbs.h"
#include "k8s/disruption_budget.h"
#include "tests/k8s/tested_api_server.h"
#include "tests/support/eventually.h"

namespace sluice::executor {
namespace {

class ServerBudgetTest : public ::testing::Test {
 protected:
  ServerBudget::Job Job() {
    return {server_.namespace_name(), "uid-7", "job7", {"v1", "Service", "job7", "uid-of-service"}};
  }
  std::string Budget() {
    const k8s::ObjectAnswer found = k8s::GetObject(server_.client(), k8s::kDisruptionBudgets,
                                                   server_.namespace_name(), "job7-servers", {});
    const size_t at = found.object.json.find("\"minAvailable\":");
    const size_t number = at + 15;
    return found.ok() && at != std::string::npos
               ? found.object.json.substr(number,
                                          found.object.json.find_first_of(",}", number) - number)
               : "none";
  }
  void WaitFor(const std::string& budget) {
    EXPECT_TRUE(Eventually([&] { return Budget() == budget; })) << budget;
  }

  k8s::TestedApiServer server_{false};
};

TEST_F(ServerBudgetTest, FollowsTheNumberOfServers) {
  ServerBudget budget(server_.client(), Job(), [](const auto&) { return true; });
  budget.Keep(2, true);
  WaitFor("1");
  budget.Keep(4, true);
  WaitFor("3");
  budget.Keep(0, true);  // not known
  budget.Keep(3, true);
  WaitFor("2");
  budget.Keep(1, true);
  WaitFor("none");
  budget.Keep(2, true);
  WaitFor("1");
}

TEST_F(ServerBudgetTest, NobodyIsEvictedWhileAReplacementIsBeingFilled) {
  ServerBudget budget(server_.client(), Job(), [](const auto&) { return true; });
  budget.Keep(2, true);
  WaitFor("1");
  budget.Keep(2, false);
  WaitFor("2");
  budget.Keep(2, true);
  WaitFor("1");
  budget.KeepAll();
  WaitFor("1000000");
  budget.Keep(1, false);
  WaitFor("none");
}

TEST_F(ServerBudgetTest, TheNextMasterChangesTheOneOfTheFirst) {
  {
    ServerBudget first(server_.client(), Job(), [](const auto&) { return true; });
    first.Keep(2, true);
    WaitFor("1");
  }
  ServerBudget next(server_.client(), Job(), [](const auto&) { return true; });
  next.Keep(5, true);
  WaitFor("4");
}

TEST_F(ServerBudgetTest, AnEarlierMasterWritesNothing) {
  std::atomic<int> asked = 0;
  ServerBudget budget(server_.client(), Job(), [&asked](const auto&) {
    ++asked;
    return false;
  });
  budget.Keep(2, true);
  EXPECT_TRUE(Eventually([&] { return asked > 0; }));
  EXPECT_EQ(Budget(), "none");
}

}  // namespace
}  // namespace sluice::executor
