#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/k8s/cluster_view_fixture.h"

// What the controller sees of jobs that it has suspended, and of those that it could.
namespace sluice::k8s {
namespace {

using elastic::ClusterProcess;
using elastic::Role;
using testing::ElementsAre;

// Its master stays even without workers, so only a suspension makes room.
TEST_F(ClusterViewTest, AJobThatCanIsSuspendedForAHigherOne) {
  Node("n1", 6);
  elastic::AutoscalerOptions at_once = kAtOnce;
  at_once.suspension_seconds = 0;
  const auto low = [&](const std::string& status) {
    jobs_ = 0;
    Job("low", 1, 6, status);
  };
  low(R"({"canSuspend": true, "grant": {"workers": 2}})");
  Pod("low-master", "n1", Labels("low", Role::kMaster, 0), "", -100);
  Worker("low", "n1");
  Worker("low", "n1");
  Job("high", 6, 6, "{}", R"(, "priority": 1)");
  Worker("high", "");
  Grant grant = Grants(at_once).at("low");
  EXPECT_EQ(grant, (Grant{0, {}, {}, {}, true})) << "no worker leaves before the checkpoint";
  EXPECT_EQ(reasons_.at("low").substr(0, 10), "suspended:");
  low(fmt::format(R"({{"canSuspend": true,
                       "grant": {{"workers": 0, "suspend": true, "reason": "{}"}}}})",
                  reasons_.at("low")));
  EXPECT_EQ(Grants(at_once).at("high").workers, 1U) << "the others' processes have not ended";
  Gone("low-master");
  Gone("low-worker-1");
  Gone("low-worker-2");
  EXPECT_EQ(Grants(at_once), (Granted{{"high", Workers(6)}}));
  Node("n2", 2);
  const Granted resumed = Grants(at_once);
  EXPECT_EQ(resumed.at("low"), Workers(1)) << "beside the master that it had";
}

TEST_F(ClusterViewTest, AMasterThatIsLostWhileItsJobIsBeingSuspendedComesBack) {
  Node("n1", 3);
  const std::string suspended =
      R"({{"canSuspend": true, "grant": {{"workers": 0, "suspend": true}},
           "conditions": [{{"type": "Suspended", "status": "{}"}}]}})";
  Job("a", 1, 1, fmt::format(fmt::runtime(suspended), "False"));
  Worker("a", "n1");
  Pod("a-master-2", "", Labels("a", Role::kMaster, 0), "", -1000);
  Job("b", 1, 2, R"({"grant": {"workers": 2}})");
  Worker("b", "n1");
  Worker("b", "n1");
  EXPECT_EQ(Grants().at("b").workers, 1U) << "otherwise the worker of the other never ends";
  jobs_ = 0;
  Job("a", 1, 1, fmt::format(fmt::runtime(suspended), "True"));
  EXPECT_FALSE(Grants().contains("b"));
}

// A worker of two processors, on one node only, of a class of its own.
TEST_F(ClusterViewTest, WhatTheWorkersOfASuspendedJobNeedIsKnown) {
  Node("n1", 8);
  Node("n2", 8);
  const char* const suspended = R"({"canSuspend": true, "grant": {"workers": 0, "suspend": true}})";
  Job("a", 1, 6, R"({"canSuspend": true, "grant": {"workers": 1}})", R"(, "servers": {"min": 1})");
  Pod("a-master", "n1", Labels("a", Role::kMaster, 0), "", -1500);
  Pod("a-ps-0", "n1", Labels("a", Role::kParameterServer, 0), "", -1500);
  Pod("a-ps-1", "n1", Labels("a", Role::kParameterServer, 1), "", -1500);
  Pod("a-worker", "n2", Labels("a", Role::kWorker, 1), R"(, "nodeSelector": {"name": "n2"})", -1500,
      false, "2");
  const ClusterView::Snapshot before = view_.Make();
  Gone("a-worker");  // some time before it is suspended
  Job("a", 1, 6, suspended, R"(, "servers": {"min": 1})");
  for (const char* const pod : {"a-master", "a-ps-0", "a-ps-1"}) {
    Gone(pod);
  }
  const ClusterView::Snapshot after = view_.Make();
  ASSERT_EQ(after.state.jobs.size(), 1U);
  const elastic::ClusterJob& job = after.state.jobs[0];
  EXPECT_TRUE(job.suspended);
  EXPECT_EQ(job.worker.cpu, 2);
  EXPECT_EQ(job.priority, before.state.jobs[0].priority);
  ASSERT_NE(job.nodes, nullptr);
  EXPECT_THAT(*job.nodes, ElementsAre(false, true));
  EXPECT_EQ(after.state.processes.size(), 2U) << "it starts with one server";
  Job("b", 1, 6, suspended,
      R"(, "servers": {"min": 1, "resources": {"requests": {"cpu": "3"}}},
          "master": {"resources": {"requests": {"cpu": "500m"}}})");
  std::vector<double> needs;
  const ClusterView::Snapshot unseen = view_.Make();
  for (const ClusterProcess& process : unseen.state.processes) {
    if (process.job == 1) {
      needs.push_back(process.request.cpu);
    }
  }
  EXPECT_THAT(needs, ElementsAre(0.5, 3)) << "as its spec says: its pods were never seen";
}

}  // namespace
}  // namespace sluice::k8s
