#include "k8s/cluster_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "k8s/pod_labels.h"

namespace sluice::k8s {
namespace {

using elastic::ClusterProcess;
using elastic::Role;
using testing::ElementsAre;

constexpr elastic::AutoscalerOptions kAtOnce = {.hysteresis_seconds = 0};

// A small cluster, described as the API server describes it.
class ClusterViewTest : public testing::Test {
 protected:
  static ObjectChange Change(const std::string& json,
                             ObjectChange::Kind kind = ObjectChange::Kind::kAppeared) {
    Result<Object> object = ReadObject(json, "an object");
    EXPECT_TRUE(object.ok()) << object.status().ToString();
    return {kind, object.ok() ? *object : Object()};
  }
  void Node(const std::string& name, int cpu, const std::string& spec = "{}", int pods = 110) {
    view_.OnNode(Change(fmt::format(
        R"({{"metadata": {{"name": "{0}", "uid": "{0}", "labels": {{"name": "{0}"}}}}, "spec": {1},
             "status": {{"allocatable": {{"cpu": "{2}", "memory": "100Gi", "pods": "{3}"}}}}}})",
        name, spec, cpu, pods)));
  }
  void Job(const std::string& name, int min, int max, const std::string& status = "{}",
           const std::string& more = "") {
    view_.OnTrainingJob(Change(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "ns", "uid": "{0}-uid",
                           "creationTimestamp": "2026-01-01T00:00:0{5}Z"}},
             "spec": {{"statement": "SELECT 1", "source": {{"secretName": "s"}},
                       "workers": {{"min": {1}, "max": {2}}}{4}}}, "status": {3}}})",
        name, min, max, status, more, ++jobs_)));
  }
  // `node` "": it waits.
  void Pod(const std::string& name, const std::string& node, const std::string& labels,
           const std::string& more_spec = "", int priority = 0, bool leaving = false,
           const std::string& cpu = "1") {
    view_.OnPod(Change(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "ns", "uid": "{0}", "labels": {2}{5}}},
             "spec": {{{1}"priority": {4}{3}, "containers": [{{"resources": {{"requests":
                 {{"cpu": "{6}"}}}}}}]}},
             "status": {{"phase": "Pending", "conditions": [
                 {{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}}]}}}})",
        name, node.empty() ? "" : fmt::format(R"("nodeName": "{}", )", node), labels, more_spec,
        priority, leaving ? R"(, "deletionTimestamp": "2026-01-01T00:00:00Z")" : "", cpu)));
  }
  void Worker(const std::string& job, const std::string& node, bool leaving = false) {
    const std::string name = fmt::format("{}-worker-{}", job, ++workers_);
    Pod(name, node, Labels(job, Role::kWorker, workers_), "", -100, leaving);
  }
  void Gone(const std::string& pod) {
    view_.OnPod(Change(
        fmt::format(
            R"({{"metadata": {{"name": "{0}", "namespace": "ns", "uid": "{0}"}}, "spec": {{}}}})",
            pod),
        ObjectChange::Kind::kGone));
  }
  static std::string Labels(const std::string& job, Role role, uint64_t number) {
    std::string json;
    for (const auto& [key, value] :
         LabelsOf({job + "-uid", role, elastic::Incarnation(number), elastic::ServerId::First()})) {
      json += fmt::format(R"({}"{}": "{}")", json.empty() ? "" : ", ", key, value);
    }
    return "{" + json + "}";
  }
  void Service(const std::string& name, const std::string& node, const std::string& more_spec = "",
               int priority = 0) {
    Pod(name, node, "{}", more_spec, priority);
  }
  std::map<std::string, Grant> Grants(const elastic::AutoscalerOptions& options = kAtOnce) {
    const ClusterView::Snapshot snapshot = view_.Make();
    std::map<std::string, Grant> grants;
    for (const auto& [index, grant] :
         ChangedGrants(snapshot, elastic::Autoscale(snapshot.state, options, {}, {}))) {
      Grant& granted = grants[snapshot.jobs[index].name] = grant;
      reasons_[snapshot.jobs[index].name] = std::exchange(granted.reason, "");
      nodes_[snapshot.jobs[index].name] = std::exchange(granted.nodes, {});
    }
    return grants;
  }
  static Grant Workers(uint32_t workers, std::vector<std::string> give_up = {}) {
    return {workers, std::move(give_up), {}};
  }

  ClusterView view_;
  std::map<std::string, std::string> reasons_;  // of the last grants, by job
  std::map<std::string, std::vector<std::string>> nodes_;
  int jobs_ = 0;
  uint64_t workers_ = 0;
};

using Granted = std::map<std::string, Grant>;

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
  EXPECT_EQ(grants.at("high").workers, 0U) << "its places are not free yet";
}

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
  EXPECT_EQ(Grants(at_once).at("high").workers, 0U) << "its processes have not ended";
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

TEST_F(ClusterViewTest, AQuotaLimitsTheGrant) {
  Node("n1", 8);
  Job("a", 1, 8);
  Worker("a", "n1");
  view_.OnQuota(Change(R"({"metadata": {"name": "q", "namespace": "ns", "uid": "q"},
      "status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "1"}}})"));
  EXPECT_EQ(Grants(), (Granted{{"a", Workers(3)}}));
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
