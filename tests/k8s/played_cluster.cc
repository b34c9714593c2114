#include "tests/k8s/played_cluster.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "k8s/api_verbs.h"
#include "k8s/cluster_objects.h"
#include "k8s/json_internal.h"
#include "k8s/pod_labels.h"
#include "k8s/training_job.h"
#include "tests/k8s/applied_kinds.h"

namespace sluice::k8s {
namespace {

constexpr std::string_view kServiceLabels = R"({"app":"service"})";
// Priority of the class sluice-high, which the fake server does not look up.
constexpr int kWorkerPriority = -100;

}  // namespace

PlayedCluster::PlayedCluster(TestedApiServer& server, Scheduler scheduler)
    : server_(server), scheduler_(scheduler) {
  if (server_.is_real()) {
    ApplyKinds(server_.namespace_name());
  }
}

PlayedCluster::~PlayedCluster() {
  for (const auto& [name, job] : jobs_) {
    DeleteAll(server_.client(), {{kTrainingJobs, server_.namespace_name(), name, "", 1}}, {});
  }
  Look();
  for (const auto& [name, pod] : pods_) {
    server_.Forget(name);
  }
  for (const auto& [name, cpu] : nodes_) {
    DeleteAll(server_.client(), {{kNodes, "", name, "", 1}}, {});
  }
}

std::string PlayedCluster::NodeName(const std::string& name) const {
  return server_.namespace_name() + "-" + name;
}

// A new namespace takes no pod before its service account is there.
void PlayedCluster::Create(const Resource& resource, const std::string& where,
                           const std::string& json) {
  ObjectAnswer made;
  for (int attempt = 0; attempt < 200; ++attempt) {
    made = CreateAll(server_.client(), {{resource, where, json}}, {}).front();
    if (made.fault != Fault::kForbidden) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(made.ok() || made.fault == Fault::kQuota) << made.status.ToString();
}

void PlayedCluster::AddNode(const std::string& name, double cpu) {
  nodes_[NodeName(name)] = cpu;
  const std::string amounts = fmt::format(R"({{"cpu":"{}","memory":"64Gi","pods":"110"}})", cpu);
  Create(kNodes, "",
         fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{0}",)"
                     R"("labels":{{"of":"{1}"}}}},"status":{{"capacity":{2},"allocatable":{2},)"
                     R"("conditions":[{{"type":"Ready","status":"True","reason":"Played"}}]}}}})",
                     NodeName(name), server_.namespace_name(), amounts));
}

void PlayedCluster::RemoveNode(const std::string& name) {
  DeleteAll(server_.client(), {{kNodes, "", NodeName(name), "", 1}}, {});
  nodes_.erase(NodeName(name));
}

void PlayedCluster::Cordon(const std::string& name, bool cordoned) {
  cordoned_[NodeName(name)] = cordoned;
  const ObjectAnswer patched =
      PatchObject(server_.client(), kNodes, "", NodeName(name), "",
                  fmt::format(R"({{"spec":{{"unschedulable":{}}}}})", cordoned), {});
  EXPECT_TRUE(patched.ok()) << patched.status.ToString();
}

void PlayedCluster::AddJob(const std::string& name, uint32_t min, uint32_t max, int priority,
                           double cpu) {
  jobs_[name].cpu = cpu;
  Create(
      kTrainingJobs, server_.namespace_name(),
      fmt::format(R"({{"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob",)"
                  R"("metadata":{{"name":"{}"}},"spec":{{"statement":"SELECT 1",)"
                  R"("source":{{"secretName":"s"}},"priority":{},"workers":{{"min":{},)"
                  R"("max":{},"priority":"high","resources":{{"requests":{{"cpu":"{}"}}}}}}}}}})",
                  name, priority, min, max, cpu));
  const ObjectAnswer begun =
      PatchObject(server_.client(), kTrainingJobs, server_.namespace_name(), name, "status",
                  R"({"status":{"master":{"number":1}}})", {});
  EXPECT_TRUE(begun.ok()) << begun.status.ToString();
}

void PlayedCluster::EndJob(const std::string& name) {
  DeleteAll(server_.client(), {{kTrainingJobs, server_.namespace_name(), name, "", 1}}, {});
  for (const Pod* pod : WorkersOf(name)) {
    DeleteAll(server_.client(), {{kPods, server_.namespace_name(), pod->name, pod->uid, 1}}, {});
  }
  jobs_.erase(name);
}

std::string PlayedCluster::PodObject(const std::string& name, const std::string& labels, double cpu,
                                     const std::string& priority_class,
                                     const std::string& more_spec) const {
  std::string rules = more_spec;
  if (!priority_class.empty()) {
    rules +=
        fmt::format(R"(,"priorityClassName":"{}","priority":{})", priority_class, kWorkerPriority);
  }
  if (scheduler_ == Scheduler::kPlayed) {
    rules += R"(,"schedulerName":"played")";
  }
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","labels":{}}},"spec":{{)"
      R"("automountServiceAccountToken":false,"terminationGracePeriodSeconds":1,)"
      R"("nodeSelector":{{"of":"{}"}},"containers":[{{"name":"sluice","image":"sluice",)"
      R"("resources":{{"requests":{{"cpu":"{}"}}}}}}]{}}}}})",
      name, labels, server_.namespace_name(), cpu, rules);
}

void PlayedCluster::AddService(const std::string& name, double cpu, const std::string& more_spec) {
  Create(kPods, server_.namespace_name(),
         PodObject(name, std::string(kServiceLabels), cpu, "", more_spec));
}

void PlayedCluster::EndService(const std::string& name) {
  DeleteAll(server_.client(), {{kPods, server_.namespace_name(), name, "", 1}}, {});
}

void PlayedCluster::Turn() {
  Look();
  PlayKubelets();
  if (scheduler_ == Scheduler::kPlayed) {
    PlayScheduler();
  }
  PlayMasters();
}

void PlayedCluster::Look() {
  const Listing jobs =
      ListObjects(server_.client(), {kTrainingJobs, server_.namespace_name(), ""}, {});
  for (const Object& object : jobs.objects) {
    const auto found = jobs_.find(object.name);
    if (found != jobs_.end()) {
      found->second.uid = object.uid;
      found->second.grant = ParseTrainingJobStatus(object.json).value().grant;
    }
  }
  const Listing listing = ListObjects(server_.client(), {kPods, server_.namespace_name(), ""}, {});
  if (!listing.ok()) {
    return;
  }
  pods_.clear();
  for (const Object& object : listing.objects) {
    const PodFacts facts = ReadPod(object).value();
    Pod pod;
    pod.name = object.name;
    pod.uid = object.uid;
    for (const auto& [name, job] : jobs_) {
      pod.job = !facts.job_uid.empty() && job.uid == facts.job_uid ? name : pod.job;
    }
    pod.node = facts.node;
    pod.cpu = facts.request.known.cpu;
    pod.priority = facts.priority;
    pod.leaving = facts.terminating;
    pod.unschedulable = facts.unschedulable;
    const auto json = ParseJsonObject(object.json, "a pod").value();
    pod.runs = TextIn(json, {"status", "phase"}) == "Running";
    pods_[pod.name] = pod;
    if (pod.leaving && !pod.job.empty() && !jobs_.at(pod.job).ended.contains(pod.name)) {
      jobs_.at(pod.job).preempted.insert(pod.name);
    }
  }
}

// What ends is gone in the next round.
void PlayedCluster::PlayKubelets() {
  for (const auto& [name, pod] : pods_) {
    if (pod.leaving) {
      server_.Forget(name);
    } else if (!pod.node.empty() && !pod.runs) {
      server_.SetStatus(name, R"({"phase":"Running"})");
    }
  }
}

// The most important first, each on the emptiest node.
void PlayedCluster::PlayScheduler() {
  std::map<std::string, double> room = nodes_;
  std::vector<const Pod*> waiting;
  for (const auto& [name, pod] : pods_) {
    if (!pod.node.empty()) {
      room[pod.node] -= pod.cpu;
    } else if (!pod.leaving) {
      waiting.push_back(&pod);
    }
  }
  std::stable_sort(waiting.begin(), waiting.end(), [](const Pod* one, const Pod* other) {
    return one->priority > other->priority;
  });
  for (const Pod* pod : waiting) {
    std::string best;
    for (const auto& [node, cpu] : nodes_) {
      const auto cordoned = cordoned_.find(node);
      if ((cordoned == cordoned_.end() || !cordoned->second) && room[node] + 1e-9 >= pod->cpu &&
          (best.empty() || room[node] > room[best])) {
        best = node;
      }
    }
    if (!best.empty()) {
      room[best] -= pod->cpu;
      server_.Bind(pod->name, best);
    } else if (!pod->unschedulable) {
      server_.SetStatus(pod->name, R"({"conditions":[{"type":"PodScheduled","status":"False",)"
                                   R"("reason":"Unschedulable","message":"no room"}]})");
    }
  }
}

std::vector<const PlayedCluster::Pod*> PlayedCluster::WorkersOf(const std::string& job) const {
  std::vector<const Pod*> workers;
  for (const auto& [name, pod] : pods_) {
    if (pod.job == job && !pod.leaving) {
      workers.push_back(&pod);
    }
  }
  return workers;
}

void PlayedCluster::PlayMasters() {
  for (auto& [name, job] : jobs_) {
    if (!job.grant || job.uid.empty()) {
      continue;
    }
    std::vector<const Pod*> workers = WorkersOf(name);
    const std::vector<std::string>& give_up = job.grant->give_up;
    std::sort(workers.begin(), workers.end(), [&give_up](const Pod* one, const Pod* other) {
      const auto rank = [&give_up](const Pod* pod) {
        const bool named = std::find(give_up.begin(), give_up.end(), pod->name) != give_up.end();
        return named ? 0 : pod->node.empty() ? 1 : 2;
      };
      return rank(one) < rank(other);
    });
    for (size_t i = 0; i + job.grant->workers < workers.size(); ++i) {
      job.ended.insert(workers[i]->name);
      DeleteAll(server_.client(),
                {{kPods, server_.namespace_name(), workers[i]->name, workers[i]->uid, 1}}, {});
    }
    for (size_t i = workers.size(); i < job.grant->workers; ++i) {
      std::string labels;
      const PodIdentity identity{job.uid, elastic::Role::kWorker,
                                 elastic::Incarnation(++job.started), elastic::ServerId::First()};
      for (const auto& [key, value] : LabelsOf(identity)) {
        labels += fmt::format(R"({}"{}":"{}")", labels.empty() ? "{" : ",", key, value);
      }
      Create(kPods, server_.namespace_name(),
             PodObject(fmt::format("{}-worker-{}", name, job.started), labels + "}", job.cpu,
                       "sluice-high", ""));
    }
  }
}

void PlayedCluster::SetQuota(double cpu) {
  const std::string amount = fmt::format(R"({{"requests.cpu":"{}"}})", cpu);
  Create(kQuotas, server_.namespace_name(),
         fmt::format(R"({{"apiVersion":"v1","kind":"ResourceQuota","metadata":{{"name":"q"}},)"
                     R"("spec":{{"hard":{0}}},"status":{{"hard":{0},"used":{{}}}}}})",
                     amount));
}

uint32_t PlayedCluster::Workers(const std::string& job) const {
  const std::vector<const Pod*> workers = WorkersOf(job);
  return static_cast<uint32_t>(std::count_if(workers.begin(), workers.end(),
                                             [](const Pod* pod) { return !pod->node.empty(); }));
}

uint32_t PlayedCluster::WaitingWorkers(const std::string& job) const {
  return static_cast<uint32_t>(WorkersOf(job).size()) - Workers(job);
}

uint32_t PlayedCluster::StartedWorkers(const std::string& job) const {
  return jobs_.at(job).started;
}

uint32_t PlayedCluster::PreemptedWorkers(const std::string& job) const {
  return static_cast<uint32_t>(jobs_.at(job).preempted.size());
}

bool PlayedCluster::Runs(const std::string& service) const {
  const auto found = pods_.find(service);
  return found != pods_.end() && found->second.runs && !found->second.leaving;
}

std::optional<Grant> PlayedCluster::GrantOf(const std::string& job) const {
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::nullopt : found->second.grant;
}

}  // namespace sluice::k8s
