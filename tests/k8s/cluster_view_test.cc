#include "k8s/cluster_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/k8s/cluster_view_fixture.h"

namespace sluice::k8s {
namespace {

using elastic::ClusterProcess;
using elastic::Role;
using testing::ElementsAre;

// Of a namespace without a gateway, or one that a gateway has not begun: it would keep its workers'
// room for ever.
TEST_F(ClusterViewTest, AJobThatNoGatewayHasBegunGetsNothing) {
  Node("n", 8);
  Job("a", 1, 8);
  NewJob("nobodys", 1, 8);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(8)}}));
  view_.OnPod(Change(fmt::format(
      R"({{"metadata": {{"name": "other", "namespace": "elsewhere", "uid": "o", "labels": {}}}}})",
      Labels("nobodys", elastic::Role::kMaster, 1))));
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(8)}})) << "its uid was copied from another namespace";
  Pod("nobodys-master-1", "n", Labels("nobodys", elastic::Role::kMaster, 1), "", -100);
  EXPECT_EQ(Grants().count("nobodys"), 1U);
}

TEST_F(ClusterViewTest, IdleRoomIsSharedByEqualJobs) {
  Node("n1", 4);
  Node("n2", 4);
  Job("a", 1, 8);
  Job("b", 1, 8);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(4)}, {"b", Workers(4)}}));
}

TEST_F(ClusterViewTest, AGrantNamesTheNodesOnWhichThereIsRoom) {
  Node("n1", 1);
  Node("n2", 2);
  Service("web", "n1");
  Job("a", 1, 2);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(2)}}));
  EXPECT_EQ(nodes_["a"], std::vector<std::string>{"n2"});
}

TEST_F(ClusterViewTest, AnUnchangedGrantIsNotWrittenAgain) {
  Node("n1", 4);
  Job("a", 1, 8, R"({"grant": {"workers": 4}})");
  EXPECT_EQ(Grants(), Granted());
}

// Nor does it have to wait again for what it has been granted.
TEST_F(ClusterViewTest, AGrantWhosePodsAppearOneByOneStays) {
  Node("n1", 4);
  Job("a", 1, 8, R"({"grant": {"workers": 4}})");
  Worker("a", "n1");
  Worker("a", "");
  EXPECT_EQ(Grants({.hysteresis_seconds = 10}), Granted());
}

// As `kubectl scale` below the minimum makes it.
TEST_F(ClusterViewTest, AJobWhoseSpecBecomesWrongKeepsItsShare) {
  Node("n1", 8);
  Job("a", 2, 4);
  Job("a", 2, 1);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(4)}}));
  Job("b", 2, 1);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(4)}})) << "b will not begin";
}

// Its TrainingJob carries the label of its pods, which is not its uid.
TEST_F(ClusterViewTest, AJobThatAStatementBeganHasItsPods) {
  Node("n1", 4);
  view_.OnTrainingJob(Change(
      R"({"metadata": {"name": "a", "namespace": "ns", "uid": "1-2-3",
                       "labels": {"training.sluice/job": "a-uid"}},
          "spec": {"statement": "SELECT 1", "source": {"secretName": "s"}, "workers": {"max": 8}},
          "status": {"grant": {"workers": 3}}})"));
  Worker("a", "n1");
  Worker("a", "n1");
  Worker("a", "n1");
  const ClusterView::Snapshot snapshot = view_.Make();
  ASSERT_EQ(snapshot.jobs.size(), 1U);
  EXPECT_EQ(snapshot.jobs[0].running, 3U);
  for (const ClusterProcess& process : snapshot.state.processes) {
    EXPECT_EQ(process.job, 0);
  }
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(4)}}));
}

TEST_F(ClusterViewTest, APlannedJobTakesNothingAndShowsWhatItNeeds) {
  Node("n1", 4);
  Node("n2", 4);
  Job("a", 1, 2, R"({"grant": {"workers": 2}})");
  Worker("a", "n1");
  Worker("a", "n1");
  const ClusterView::Snapshot before = view_.Make();
  PodFacts worker;
  worker.request.known = {2, 0, 0, 1};
  worker.request.further["example.com/fpga"] = 1;
  worker.priority = -1000;
  PodFacts master;
  master.role = Role::kMaster;
  master.request.known = {0.5, 0, 0, 1};
  TrainingJobSpec spec;
  spec.workers.min = 2;
  spec.workers.max = 3;
  spec.priority = 7;
  view_.Plan("planned", spec, {worker, master});
  const ClusterView::Snapshot after = view_.Make();
  ASSERT_EQ(after.state.jobs.size(), 2U);
  const elastic::ClusterJob& planned = after.state.jobs.back();
  EXPECT_EQ(planned.name, "planned");
  EXPECT_EQ(planned.min, 2U);
  EXPECT_EQ(planned.max, 3U);
  EXPECT_EQ(planned.worker.cpu, 2);
  EXPECT_EQ(planned.worker.further[0], 1);
  EXPECT_LT(planned.priority, after.state.jobs.front().priority);
  ASSERT_EQ(after.state.processes.size(), before.state.processes.size() + 1) << "the master waits";
  EXPECT_EQ(std::count_if(after.state.processes.begin(), after.state.processes.end(),
                          [](const ClusterProcess& each) {
                            return each.job == 1 && !each.worker &&
                                   each.node == ClusterProcess::kNone && each.request.cpu == 0.5;
                          }),
            1);
}

TEST_F(ClusterViewTest, JobsThatAreOverOrSuspendedGetNothing) {
  Node("n1", 4);
  Job("over", 1, 8, R"({"conditions": [{"type": "Complete", "status": "True"}]})");
  Job("suspended", 1, 8, "{}", R"(, "suspend": true)");
  EXPECT_EQ(Grants(), Granted());
}

TEST_F(ClusterViewTest, AServiceThatWaitsTakesTheRoomOfWorkersByName) {
  Node("n1", 3);
  Job("a", 1, 8, R"({"grant": {"workers": 3}})");
  Worker("a", "n1");
  Worker("a", "n1");
  Worker("a", "n1");
  EXPECT_EQ(Grants(), Granted());
  Service("web", "");
  const Granted grants = Grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants.at("a").workers, 2U);
  EXPECT_EQ(grants.at("a").give_up.size(), 1U);
  EXPECT_EQ(reasons_["a"], "a service needs the room");
}

TEST_F(ClusterViewTest, WhereItGoesADifferentNodeWouldNotHelp) {
  Node("n1", 2);
  Node("n2", 2);
  Job("a", 1, 8, R"({"grant": {"workers": 4}})");
  for (const char* const node : {"n1", "n1", "n2", "n2"}) {
    Worker("a", node);
  }
  Service("web", "", R"(, "nodeSelector": {"name": "n2"})");
  const Granted grants = Grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_THAT(grants.at("a").give_up, ElementsAre(testing::AnyOf("a-worker-3", "a-worker-4")));
}

// Its master ends none as long as it has no more than it may have.
TEST_F(ClusterViewTest, AWorkerThatHasToMoveLeavesBeforeAnotherOneStarts) {
  Node("n1", 2);
  Node("n2", 2);
  Job("a", 2, 2, R"({"grant": {"workers": 2}})");
  Worker("a", "n1");
  Worker("a", "n2");
  Pod("web", "", "{}", "", 0, false, "2");
  const Granted grants = Grants();
  ASSERT_EQ(grants.size(), 1U);
  EXPECT_EQ(grants.at("a").workers, 1U);
  EXPECT_EQ(grants.at("a").give_up.size(), 1U);
}

TEST_F(ClusterViewTest, AtItsMinimumAJobMovesAWorkerByStartingAnotherOneFirst) {
  Node("n1", 3);
  Node("n2", 1);
  Job("a", 1, 2, R"({"grant": {"workers": 1}})");
  Worker("a", "n1");
  Pod("web", "", "{}", "", 0, false, "3");
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(2)}}));
}

TEST_F(ClusterViewTest, APodThatShrinkingDoesNotHelpShrinksNobody) {
  Node("n1", 2);
  Node("gpu", 2, R"({"taints": [{"key": "gpu", "value": "y", "effect": "NoSchedule"}]})");
  Job("a", 1, 8, R"({"grant": {"workers": 2}})");
  Worker("a", "n1");
  Worker("a", "n1");
  Pod("large", "", "{}", "", 0, false, "8");                                // larger than a node
  Service("elsewhere", "", R"(, "nodeSelector": {"name": "n9"})");          // no such node
  Service("claim", "", R"(, "volumes": [{"persistentVolumeClaim": {}}])");  // not judged
  Service("lower", "", "", -200);                                           // comes after ours
  EXPECT_EQ(Grants(), Granted());
}

TEST_F(ClusterViewTest, WorkersThatEndHoldTheirPlaceAndAreNotCounted) {
  Node("n1", 3);
  Job("a", 1, 8, R"({"grant": {"workers": 2}})");
  Worker("a", "n1");
  Worker("a", "n1");
  Worker("a", "n1", true);
  Service("web", "");
  EXPECT_EQ(Grants(), Granted()) << "the service takes the place of the one that ends";
}

TEST_F(ClusterViewTest, ANodeTakesOnlySoManyPods) {
  Node("n1", 8, "{}", 3);
  Service("web", "n1");
  Job("a", 1, 8);
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(2)}}));
}

TEST_F(ClusterViewTest, CordonedAndTaintedNodesGetNothingNewAndKeepWhatTheyHave) {
  Node("n1", 4, R"({"unschedulable": true})");
  Node("n2", 4, R"({"taints": [{"key": "k", "value": "v", "effect": "NoSchedule"}]})");
  Job("a", 1, 8, R"({"grant": {"workers": 2}})");
  Worker("a", "n1");
  Worker("a", "n2");
  EXPECT_EQ(Grants(), Granted());
}

TEST_F(ClusterViewTest, AJobBelowItsMinimumWaitsWithNothing) {
  Node("n1", 4);
  Service("web", "n1");
  Service("web2", "n1");
  Job("large", 3, 8);
  EXPECT_EQ(Grants(), (Granted{{"large", Workers(0)}}));
  EXPECT_EQ(reasons_["large"], "there is no room yet for the 3 workers that it needs at least");
  Job("small", 1, 2);
  EXPECT_EQ(Grants(), (Granted{{"large", Workers(0)}, {"small", Workers(2)}}));
}

TEST_F(ClusterViewTest, AJobsFirstWorkerStaysWhileItsRoomIsBeingMade) {
  Node("n1", 4);
  Job("old", 1, 8, R"({"grant": {"workers": 4}})");
  for (int i = 0; i < 4; ++i) {
    Worker("old", "n1");
  }
  Job("new", 1, 8);
  Worker("new", "");
  EXPECT_EQ(Grants(),
            (Granted{{"new", Workers(1)}, {"old", Workers(2, {"old-worker-3", "old-worker-4"})}}));
}

TEST_F(ClusterViewTest, AJobsFirstWorkerIsWithdrawnWhereThereIsNoRoomToBeMade) {
  Node("n1", 4);
  Job("old", 4, 4, R"({"grant": {"workers": 4}})");
  for (int i = 0; i < 4; ++i) {
    Worker("old", "n1");
  }
  Job("new", 1, 8);
  Worker("new", "");
  EXPECT_EQ(Grants(), (Granted{{"new", Workers(0)}}));
}

TEST_F(ClusterViewTest, APriorityTakesFromLowerJobsDownToTheirMinimum) {
  Node("n1", 6);
  Job("low", 2, 6, R"({"grant": {"workers": 6}})");
  for (int i = 0; i < 6; ++i) {
    Worker("low", "n1");
  }
  Job("high", 1, 8, "{}", R"(, "priority": 1)");
  Worker("high", "");  // which shows that its pods are of the same class
  const Granted grants = Grants();
  EXPECT_EQ(grants.at("low").workers, 2U);
  EXPECT_EQ(grants.at("low").give_up.size(), 4U);
  EXPECT_EQ(grants.at("high").workers, 1U) << "the others' places are not free yet";
}

TEST_F(ClusterViewTest, AQuotaLimitsTheGrant) {
  Node("n1", 8);
  Job("a", 1, 8);
  Worker("a", "n1");
  view_.OnQuota(Change(R"({"metadata": {"name": "q", "namespace": "ns", "uid": "q"},
      "status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "1"}}})"));
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(3)}}));
}

// However many jobs one of them has.
TEST_F(ClusterViewTest, NamespacesHaveEqualShares) {
  Node("n1", 12);
  for (const char* const name : {"a", "b", "c"}) {
    Job(name, 1, 12);
  }
  namespace_ = "other";
  Job("d", 1, 12);
  EXPECT_EQ(Grants(),
            (Granted{{"a", Workers(2)}, {"b", Workers(2)}, {"c", Workers(2)}, {"d", Workers(6)}}));
}

// An administrator's, since whoever may only train there cannot change a quota.
TEST_F(ClusterViewTest, AQuotaGivesItsNamespaceAnotherShare) {
  Node("n1", 12);
  Job("a", 1, 12);
  namespace_ = "other";
  Job("b", 1, 12);
  const auto share = [this](const char* text) {
    view_.OnQuota(Change(fmt::format(
        R"({{"metadata": {{"name": "q", "namespace": "ns", "uid": "q",
                           "annotations": {{"sluice.dev/share": "{}"}}}}}})",
        text)));
    return Grants();
  };
  EXPECT_EQ(share("3"), (Granted{{"a", Workers(9)}, {"b", Workers(3)}}));
  EXPECT_EQ(share("0.5"), (Granted{{"a", Workers(4)}, {"b", Workers(8)}}));
  for (const char* const wrong : {"", "0", "-3", "many", "3x", "nan", "inf", "1e9"}) {
    EXPECT_EQ(share(wrong), (Granted{{"a", Workers(6)}, {"b", Workers(6)}})) << wrong;
  }
}

// What is left takes as long as the master says, whatever the rate of the second in which it says
// it.
TEST_F(ClusterViewTest, AJobThatStallsIsNotNearlyDone) {
  for (int i = 0; i < 30; ++i) {
    Job("stalls", 1, 2, R"({"workers": {"running": 2}, "rowsPerSecond": 100, "secondsLeft": 300})");
  }
  Job("stalls", 1, 2, R"({"workers": {"running": 2}, "rowsPerSecond": 0.01, "secondsLeft": 300})");
  const elastic::ClusterJob job = view_.Make().state.jobs[0];
  ASSERT_FALSE(job.throughput.empty());
  EXPECT_DOUBLE_EQ(job.rows_left.value_or(0), 300 * elastic::ThroughputAt(job, 2));
}

TEST_F(ClusterViewTest, ThroughputIsMeasuredWhereTheWorkersStayTheSame) {
  Node("n1", 8);
  const std::string two = R"({"workers": {"running": 2}, "rowsPerSecond": 100})";
  for (int round = 0; round < 7; ++round) {
    Job("a", 1, 8, two);
    EXPECT_TRUE(view_.Make().state.jobs[0].throughput.empty());
  }
  Job("a", 1, 8, two);
  ASSERT_EQ(view_.Make().state.jobs[0].throughput.size(), 1U);
  EXPECT_EQ(view_.Make().state.jobs[0].throughput[0].first, 2U);
}

// Otherwise three workers would look much better than two in the end.
TEST_F(ClusterViewTest, AMachineThatBecomesBusierChangesNoKnee) {
  Node("n1", 8);
  const auto pass = [this](int count, int workers, double rate) {
    for (int i = 0; i < count; ++i) {
      Job("a", 1, 8,
          fmt::format(R"({{"workers": {{"running": {}}}, "rowsPerSecond": {}}})", workers, rate));
    }
  };
  pass(10, 2, 1000);
  pass(10, 3, 1100);
  pass(60, 2, 500);
  const auto throughput = view_.Make().state.jobs[0].throughput;
  ASSERT_EQ(throughput.size(), 2U);
  EXPECT_NEAR(throughput[0].second, 500, 1);
  EXPECT_NEAR(throughput[1].second, 550, 1);
}

TEST_F(ClusterViewTest, WhatIsGoneIsGone) {
  Node("n1", 4);
  Job("a", 1, 8);
  view_.OnNode(Change(R"({"metadata": {"name": "n1", "uid": "n1"}})", ObjectChange::Kind::kGone));
  EXPECT_TRUE(view_.Make().state.nodes.empty());
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(0)}}));
}

}  // namespace
}  // namespace sluice::k8s
