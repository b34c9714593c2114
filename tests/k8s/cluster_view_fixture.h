#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "k8s/changed_grants.h"
#include "k8s/cluster_view.h"
#include "k8s/pod_labels.h"

namespace sluice::k8s {

// A small cluster, described as the API server describes it.
class ClusterViewTest : public testing::Test {
 protected:
  using Granted = std::map<std::string, Grant>;
  static constexpr elastic::AutoscalerOptions kAtOnce = {.hysteresis_seconds = 0};

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
  // With a master.
  void Job(const std::string& name, int min, int max, const std::string& status = "{}",
           const std::string& more = "") {
    const std::string rest = status == "{}" ? "}" : ", " + status.substr(1);
    NewJob(name, min, max, R"({"master": {"number": 1})" + rest, more);
  }
  void NewJob(const std::string& name, int min, int max, const std::string& status = "{}",
              const std::string& more = "") {
    view_.OnTrainingJob(Change(fmt::format(
        R"({{"metadata": {{"name": "{0}", "namespace": "{6}", "uid": "{0}-uid",
                           "creationTimestamp": "2026-01-01T00:00:0{5}Z"}},
             "spec": {{"statement": "SELECT 1", "source": {{"secretName": "s"}},
                       "workers": {{"min": {1}, "max": {2}}}{4}}}, "status": {3}}})",
        name, min, max, status, more, ++jobs_, namespace_)));
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
    Pod(name, node, Labels(job, elastic::Role::kWorker, workers_), "", -100, leaving);
  }
  void Gone(const std::string& pod) {
    view_.OnPod(Change(
        fmt::format(
            R"({{"metadata": {{"name": "{0}", "namespace": "ns", "uid": "{0}"}}, "spec": {{}}}})",
            pod),
        ObjectChange::Kind::kGone));
  }
  static std::string Labels(const std::string& job, elastic::Role role, uint64_t number) {
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
  std::string namespace_ = "ns";  // of the next jobs
  int jobs_ = 0;
  uint64_t workers_ = 0;
};

}  // namespace sluice::k8s
