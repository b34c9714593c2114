#include "tests/k8s/scheduled_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <utility>

#include "executor/pods/job_places.h"
#include "k8s/api_verbs.h"
#include "k8s/cluster_objects.h"
#include "k8s/json_internal.h"
#include "k8s/pod_labels.h"
#include "k8s/pod_request.h"
#include "k8s/training_job.h"

namespace sluice::k8s {
namespace {

constexpr Resource kDeployments{"apps", "v1", "deployments"};
constexpr auto kTurn = std::chrono::milliseconds(50);
constexpr std::string_view kServiceLabel = "app";

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "{}\n", why);
  std::exit(1);
}

std::string AmountsOf(const elastic::Capacity& capacity) {
  return fmt::format(R"("cpu":"{}m","memory":"{}")",
                     static_cast<int64_t>(capacity.cpu * 1000 + 0.5), capacity.memory_bytes);
}

std::string SpecOf(const elastic::Capacity& request, std::string_view priority_class) {
  return fmt::format(
      R"({{"automountServiceAccountToken":false,"terminationGracePeriodSeconds":2,)"
      R"({}"containers":[{{"name":"sluice","image":"sluice","resources":{{"requests":{{{}}}}}}}]}})",
      priority_class.empty() ? "" : fmt::format(R"("priorityClassName":"{}",)", priority_class),
      AmountsOf(request));
}

}  // namespace

ScheduledCluster::ScheduledCluster(ApiClient& client, Options options)
    : client_(client), options_(std::move(options)), random_(options_.seed) {
  const auto watch = [&](const Resource& resource, ObjectWatch::Listener listener) {
    auto started = ObjectWatch::Start(client_, {resource, options_.namespace_name, ""},
                                      std::move(listener), {});
    if (!started.ok()) {
      Die(started.status().ToString());
    }
    return *std::move(started);
  };
  pod_watch_ = watch(kPods, [this](const ObjectChange& change) { OnPod(change); });
  job_watch_ = watch(kTrainingJobs, [this](const ObjectChange& change) { OnTrainingJob(change); });
}

ScheduledCluster::~ScheduledCluster() {
  pod_watch_.reset();
  job_watch_.reset();
}

void ScheduledCluster::Must(const std::vector<ApiAnswer>& answers) const {
  for (const ApiAnswer& answer : answers) {
    if (!answer.ok() && answer.fault != Fault::kNotFound && answer.fault != Fault::kConflict) {
      Die(answer.status.ToString());
    }
  }
}

std::string ScheduledCluster::Create(const Resource& resource, const std::string& where,
                                     const std::string& json) {
  const ObjectAnswer made = CreateAll(client_, {{resource, where, json}}, {}).front();
  if (!made.ok()) {
    Die(made.status.ToString());
  }
  return made.object.uid;
}

void ScheduledCluster::AddNode(const std::string& name, const elastic::Capacity& capacity) {
  const std::string amounts = fmt::format(R"({{{},"pods":"110"}})", AmountsOf(capacity));
  Create(kNodes, "",
         fmt::format(R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{0}",)"
                     R"("labels":{{"kubernetes.io/hostname":"{0}"}}}},)"
                     R"("status":{{"capacity":{1},"allocatable":{1},)"
                     R"("conditions":[{{"type":"Ready","status":"True","reason":"Played"}}]}}}})",
                     name, amounts));
  nodes_.push_back(name);
  total_cpu_ += capacity.cpu;
}

size_t ScheduledCluster::AddJob(elastic::WorldJob what) {
  Job job;
  job.name = fmt::format("job{}", jobs_.size());
  job.uid = Create(
      kTrainingJobs, options_.namespace_name,
      fmt::format(R"({{"apiVersion":"training.sluice/v1alpha1","kind":"TrainingJob",)"
                  R"("metadata":{{"name":"{}"}},"spec":{{"statement":"SELECT 1",)"
                  R"("source":{{"secretName":"s"}},"priority":{},"workers":{{"min":{},"max":{},)"
                  R"("priority":"low","resources":{{"requests":{{{}}}}}}}}}}})",
                  job.name, what.priority, what.min, what.max, AmountsOf(what.worker)));
  job.what = std::move(what);
  Create({{kPods, options_.namespace_name, PodOf(job, Role::kMaster, 1)}});
  jobs_.push_back(std::move(job));
  fates_.push_back({now(), std::nullopt, std::nullopt, 0});
  return jobs_.size() - 1;
}

std::vector<ObjectAnswer> ScheduledCluster::Create(const std::vector<Creation>& pods) {
  std::vector<ObjectAnswer> answers = CreateAll(client_, pods, {});
  for (const ObjectAnswer& made : answers) {
    if (!made.ok()) {
      Die(made.status.ToString());
    }
  }
  return answers;
}

std::string ScheduledCluster::PodOf(const Job& job, Role role, uint64_t number) const {
  PodIdentity identity;
  identity.job_uid = job.uid;
  identity.incarnation = elastic::Incarnation(number + 1);
  identity.role = role == Role::kMaster   ? elastic::Role::kMaster
                  : role == Role::kServer ? elastic::Role::kParameterServer
                                          : elastic::Role::kWorker;
  std::string labels;
  for (const auto& [key, value] : LabelsOf(identity)) {
    labels += fmt::format(R"({}"{}":"{}")", labels.empty() ? "" : ",", key, value);
  }
  const elastic::Capacity& request = role == Role::kMaster   ? job.what.master
                                     : role == Role::kServer ? job.what.server
                                                             : job.what.worker;
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}-{}-{}","labels":{{{}}}}},)"
      R"("spec":{}}})",
      job.name, elastic::RoleName(identity.role), number, labels,
      SpecOf(request, role == Role::kWorker ? kLowPriorityClass : kHighPriorityClass));
}

void ScheduledCluster::SetService(const std::string& name, const elastic::Capacity& process,
                                  uint32_t count, std::optional<int> /*priority*/) {
  if (std::exchange(services_[name], true)) {
    Must({PatchObject(client_, kDeployments, options_.namespace_name, name, "",
                      fmt::format(R"({{"spec":{{"replicas":{}}}}})", count), {})
                  .ok()
              ? ApiAnswer()
              : FailureOf({}, Fault::kServer, "the service cannot be scaled")});
    return;
  }
  Create(kDeployments, options_.namespace_name,
         fmt::format(R"({{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{0}"}},)"
                     R"("spec":{{"replicas":{1},"selector":{{"matchLabels":{{"{2}":"{0}"}}}},)"
                     R"("template":{{"metadata":{{"labels":{{"{2}":"{0}"}}}},"spec":{3}}}}}}})",
                     name, count, kServiceLabel, SpecOf(process, "")));
}

void ScheduledCluster::OnPod(const ObjectChange& change) {
  const Object& object = change.object;
  const MutexLock lock(mutex_);
  if (change.kind == ObjectChange::Kind::kGone) {
    pods_.erase(object.uid);
    return;
  }
  const PodFacts facts = ReadPod(object).value();
  const auto json = ParseJsonObject(object.json, "a pod").value();
  Pod& pod = pods_[object.uid];
  pod.name = object.name;
  pod.node = facts.node;
  pod.job_uid = facts.job_uid;
  pod.cpu = facts.request.known.cpu;
  pod.leaving = facts.terminating;
  pod.runs = TextIn(json, {"status", "phase"}) == "Running";
  if (pod.job_uid.empty()) {
    const auto label = object.labels.find(std::string(kServiceLabel));
    pod.service = label == object.labels.end() ? "" : label->second;
  } else {
    pod.role = facts.role == elastic::Role::kMaster            ? Role::kMaster
               : facts.role == elastic::Role::kParameterServer ? Role::kServer
                                                               : Role::kWorker;
  }
}

void ScheduledCluster::OnTrainingJob(const ObjectChange& change) {
  const auto status = ParseTrainingJobStatus(change.object.json);
  const MutexLock lock(mutex_);
  if (change.kind == ObjectChange::Kind::kGone) {
    grants_.erase(change.object.uid);
  } else if (status.ok() && status->grant) {
    grants_[change.object.uid] = *status->grant;
  }
}

double ScheduledCluster::now() const {
  return begun_ ? SecondsBetween(*begun_, client_.clock().Now()) : 0;
}

void ScheduledCluster::RunUntil(double seconds) {
  if (!begun_) {
    begun_ = client_.clock().Now();
  }
  while (now() < seconds) {
    Turn();
    std::this_thread::sleep_for(kTurn);
  }
}

void ScheduledCluster::Turn() {
  const double time = now();
  PlayKubelets(time);
  PlayGateway();
  PlayMasters(time);
  for (size_t job = 0; job < jobs_.size(); ++job) {
    if (!fates_[job].first_worker && Workers(job) > 0) {
      fates_[job].first_worker = time;
    }
  }
}

void ScheduledCluster::PlayKubelets(double time) {
  std::vector<ApiRequest> requests;
  {
    const MutexLock lock(mutex_);
    for (auto& [uid, pod] : pods_) {
      if (pod.node.empty()) {
        continue;
      }
      ApiRequest request;
      request.resource = kPods;
      request.namespace_name = options_.namespace_name;
      request.name = pod.name;
      if (pod.leaving) {
        preempted_ += !pod.ends && !pod.asked && pod.role == Role::kWorker ? 1 : 0;
        pod.ends = pod.ends.value_or(time + options_.grace_seconds);
        if (time >= *pod.ends && !std::exchange(pod.told_end, true)) {
          request.verb = Verb::kDelete;
          request.body = fmt::format(R"({{"kind":"DeleteOptions","apiVersion":"v1",)"
                                     R"("gracePeriodSeconds":0,"preconditions":{{"uid":"{}"}}}})",
                                     uid);
          requests.push_back(std::move(request));
        }
        continue;
      }
      if (!pod.starts) {
        pod.starts =
            time + std::uniform_real_distribution<double>(options_.shortest_start_seconds,
                                                          options_.longest_start_seconds)(random_);
      }
      if (time >= *pod.starts && !std::exchange(pod.told_start, true)) {
        request.verb = Verb::kPatch;
        request.subresource = "status";
        request.body = R"({"status":{"phase":"Running","conditions":[)"
                       R"({"type":"PodScheduled","status":"True"},)"
                       R"({"type":"Ready","status":"True"}]}})";
        requests.push_back(std::move(request));
      }
    }
  }
  Must(client_.CallAll(requests, {}));
}

void ScheduledCluster::PlayGateway() {
  std::vector<Creation> servers, workers;
  {
    const MutexLock lock(mutex_);
    for (Job& job : jobs_) {
      if (!job.master_placed || std::exchange(job.begun, true)) {
        continue;
      }
      for (uint32_t i = 0; i < job.what.servers; ++i) {
        servers.push_back({kPods, options_.namespace_name, PodOf(job, Role::kServer, i)});
      }
      for (uint32_t i = 0; i < std::min(job.what.min, executor::JobPlaces::kMaxWaiting); ++i) {
        workers.push_back({kPods, options_.namespace_name, PodOf(job, Role::kWorker, job.made++)});
        ++starts_;
      }
    }
  }
  Create(servers);
  AddWorkers(Create(workers));
}

// Before the watch reports them.
void ScheduledCluster::AddWorkers(const std::vector<ObjectAnswer>& made) {
  const MutexLock lock(mutex_);
  for (const ObjectAnswer& each : made) {
    const PodFacts facts = ReadPod(each.object).value();
    Pod& pod = pods_[each.object.uid];
    if (pod.name.empty()) {
      pod.name = each.object.name;
      pod.job_uid = facts.job_uid;
      pod.role = Role::kWorker;
      pod.cpu = facts.request.known.cpu;
    }
  }
}

void ScheduledCluster::PlayMasters(double time) {
  std::vector<Creation> creations;
  std::vector<Deletion> deletions;
  {
    const MutexLock lock(mutex_);
    const auto note = [time](std::optional<double>& since, bool holds) {
      since = since || !holds ? since : time;
    };
    for (Job& job : jobs_) {
      uint32_t servers = 0;
      std::vector<std::pair<std::string, Pod*>> workers;
      bool master = false, worker = false;
      for (auto& [uid, pod] : pods_) {
        if (pod.job_uid != job.uid || pod.leaving || pod.asked) {
          continue;
        }
        master = master || (pod.role == Role::kMaster && pod.runs);
        if (pod.role == Role::kMaster && !pod.node.empty()) {
          note(job.master_placed, true);
        }
        worker = worker || (pod.role == Role::kWorker && pod.runs);
        servers += pod.role == Role::kServer && !pod.node.empty() ? 1 : 0;
        if (pod.role == Role::kWorker) {
          workers.emplace_back(uid, &pod);
        }
      }
      note(job.worker_placed, std::any_of(workers.begin(), workers.end(), [](const auto& each) {
             return !each.second->node.empty();
           }));
      note(job.trains, master && worker);
      job.servers_placed = job.servers_placed || (master && servers >= job.what.servers);
      const auto grant = grants_.find(job.uid);
      if (!job.servers_placed || grant == grants_.end()) {
        continue;
      }
      const std::set<std::string> unwanted(grant->second.give_up.begin(),
                                           grant->second.give_up.end());
      std::stable_sort(workers.begin(), workers.end(), [&](const auto& one, const auto& other) {
        const auto rank = [&](const Pod& pod) {
          return unwanted.contains(pod.name) ? 0 : pod.node.empty() ? 1 : pod.runs ? 3 : 2;
        };
        return rank(*one.second) < rank(*other.second);
      });
      const size_t wanted = std::min(grant->second.workers, job.what.max);
      for (size_t i = 0; i + wanted < workers.size(); ++i) {
        workers[i].second->asked = true;
        deletions.push_back(
            {kPods, options_.namespace_name, workers[i].second->name, workers[i].first, 2});
      }
      // Those that the watch has not reported yet count, too.
      for (size_t i = workers.size(); i < wanted && creations.size() < 200; ++i) {
        creations.push_back(
            {kPods, options_.namespace_name, PodOf(job, Role::kWorker, job.made++)});
        ++starts_;
      }
    }
  }
  Must(DeleteAll(client_, deletions, {}));
  AddWorkers(Create(creations));
}

uint32_t ScheduledCluster::Workers(size_t job) const {
  const MutexLock lock(mutex_);
  return static_cast<uint32_t>(std::count_if(pods_.begin(), pods_.end(), [&](const auto& each) {
    const Pod& pod = each.second;
    return pod.role == Role::kWorker && pod.job_uid == jobs_[job].uid && pod.runs && !pod.leaving;
  }));
}

uint32_t ScheduledCluster::ServiceRunning(const std::string& name) const {
  const MutexLock lock(mutex_);
  return static_cast<uint32_t>(std::count_if(pods_.begin(), pods_.end(), [&](const auto& each) {
    return each.second.service == name && each.second.runs && !each.second.leaving;
  }));
}

double ScheduledCluster::UsedCpu() const {
  const MutexLock lock(mutex_);
  double used = 0;
  for (const auto& [uid, pod] : pods_) {
    used += pod.runs ? pod.cpu : 0;
  }
  return used;
}

ScheduledCluster::Wait ScheduledCluster::MeanWait() const {
  Wait sum;
  double jobs = 0;
  for (size_t i = 0; i < jobs_.size(); ++i) {
    const Job& job = jobs_[i];
    if (fates_[i].first_worker && job.master_placed && job.worker_placed && job.trains) {
      sum.master_placed += *job.master_placed - fates_[i].arrived;
      sum.worker_placed += *job.worker_placed - *job.master_placed;
      sum.worker_runs += *fates_[i].first_worker - *job.worker_placed;
      sum.trains += *job.trains - *fates_[i].first_worker;
      ++jobs;
    }
  }
  jobs = std::max(1.0, jobs);
  return {sum.master_placed / jobs, sum.worker_placed / jobs, sum.worker_runs / jobs,
          sum.trains / jobs};
}

size_t ScheduledCluster::pods() const {
  const MutexLock lock(mutex_);
  return pods_.size();
}

}  // namespace sluice::k8s
