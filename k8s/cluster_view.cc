#include "k8s/cluster_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "k8s/namespace_shares.h"
#include "k8s/pod_labels.h"

namespace sluice::k8s {
namespace {

using elastic::AllowedNodes;
using elastic::ClusterJob;
using elastic::ClusterProcess;

// Before the first pod of a job shows what its workers request.
constexpr double kUnknownCpu = 1;

bool IsOver(const TrainingJobStatus& status) {
  return Holds(status, kConditionComplete) || Holds(status, kConditionFailed);
}

// Absent: as many as the statement says.
std::optional<uint32_t> ServersAtFirst(const TrainingJobSpec& spec) {
  return spec.servers.min ? spec.servers.min : spec.servers.max;
}

template <class Facts>
void Keep(std::map<std::string, Facts>& known, const std::string& key, const ObjectChange& change,
          Result<Facts> facts) {
  if (change.kind == ObjectChange::Kind::kGone || !facts.ok()) {
    known.erase(key);
  } else {
    known[key] = std::move(*facts);
  }
}

}  // namespace

void ClusterView::OnNode(const ObjectChange& change) {
  Keep(nodes_, change.object.name, change, ReadNode(change.object));
}

void ClusterView::OnPod(const ObjectChange& change) {
  Keep(pods_, change.object.uid, change, ReadPod(change.object));
  const auto found = pods_.find(change.object.uid);
  if (found == pods_.end() || found->second.terminating || found->second.job_uid.empty() ||
      found->second.role != elastic::Role::kWorker) {
    return;
  }
  // A job that is suspended has none, and needs the same again.
  const auto [last, first] = workers_.emplace(found->second.job_uid, found->second);
  if (!first && last->second.created <= found->second.created) {
    last->second = found->second;
  }
}

void ClusterView::OnQuota(const ObjectChange& change) {
  Keep(quotas_, change.object.uid, change, ReadQuota(change.object));
}

void ClusterView::OnTrainingJob(const ObjectChange& change) {
  const Object& object = change.object;
  Result<TrainingJobStatus> status = ParseTrainingJobStatus(object.json);
  if (change.kind == ObjectChange::Kind::kGone || object.leaving || !status.ok()) {
    workers_.erase(JobUidOf(object));
    jobs_.erase(object.uid);
    return;
  }
  const auto known = jobs_.find(object.uid);
  Status mistakes;  // a gateway tells them
  TrainingJobSpec spec = HoldingSpec(
      object.json, known == jobs_.end() ? std::nullopt : std::optional(known->second.spec),
      &mistakes);
  if (known == jobs_.end() && !mistakes.ok()) {
    return;  // it will not begin
  }
  KnownJob& job = jobs_[object.uid];
  job.uid = JobUidOf(object);
  job.namespace_name = object.namespace_name;
  job.name = object.name;
  job.spec = std::move(spec);
  job.status = std::move(*status);
  job.created = CreationTimeOf(object.json);
  const bool suspended = SuspendedByGrant(job.status);
  if (suspended != job.suspended) {
    job.suspended = suspended;
    RememberNeeds(job);
  }
  const uint32_t workers = job.status.running_workers;
  const double rate = job.status.rows_per_second.value_or(0);
  if (workers > 0 && rate > 0) {
    job.curve.Measure(workers, rate);
  }
}

// What a job that has just been suspended had besides its workers, as far as it starts with it.
void ClusterView::RememberNeeds(KnownJob& job) const {
  job.needs.clear();
  std::map<elastic::Role, uint32_t> missing = {
      {elastic::Role::kMaster, 1},
      {elastic::Role::kParameterServer, ServersAtFirst(job.spec).value_or(UINT32_MAX)}};
  for (const auto& [uid, pod] : pods_) {
    if (job.suspended && pod.job_uid == job.uid && !pod.over && !pod.terminating &&
        missing[pod.role] > 0) {
      --missing[pod.role];
      job.needs.push_back(pod);
    }
  }
}

void ClusterView::Plan(const std::string& uid, const TrainingJobSpec& spec,
                       std::vector<PodFacts> pods) {
  KnownJob& job = jobs_[uid];
  job.uid = uid;
  job.spec = spec;
  for (size_t i = 0; i < pods.size(); ++i) {
    PodFacts& pod = pods_[fmt::format("{}-{}", uid, i)] = std::move(pods[i]);
    job.namespace_name = pod.namespace_name;
    pod.job_uid = uid;
    // Shows what a worker requests, and is none that a quota counts.
    pod.over = pod.role == elastic::Role::kWorker;
  }
}

// Builds one snapshot.
class ClusterView::Builder {
 public:
  explicit Builder(const ClusterView& view) : view_(view) {}

  Snapshot Build() {
    LookAtWorkers();
    NameFurtherResources();
    for (const auto& [uid, pod] : view_.pods_) {
      jobs_of_pods_.emplace(pod.namespace_name, pod.job_uid);
    }
    for (const auto& [name, facts] : view_.nodes_) {
      node_index_[name] = static_cast<int>(made_.state.nodes.size());
      made_.state.nodes.push_back(
          {name, CapacityOf(facts.allocatable), !facts.ready, facts.cordoned});
    }
    for (const auto& [uid, job] : view_.jobs_) {
      if (!IsOver(job.status) && !job.spec.suspend && HasBegun(job)) {
        job_index_[job.uid] = static_cast<int>(made_.state.jobs.size());
        made_.jobs.push_back({job.namespace_name, job.name, job.status.grant, 0});
        made_.state.jobs.push_back(Describe(job));
        being_suspended_.push_back(job.suspended && !Holds(job.status, kConditionSuspended));
      }
    }
    for (const auto& [uid, pod] : view_.pods_) {
      if (IsNeededToSuspend(pod)) {
        without_master_.insert(pod.job_uid);
      }
    }
    for (const auto& [uid, pod] : view_.pods_) {
      AddPod(uid, pod);
    }
    for (const auto& [uid, job] : view_.jobs_) {
      const auto found = job_index_.find(job.uid);
      if (job.suspended && found != job_index_.end()) {
        AddNeeds(job, found->second);
      }
    }
    for (size_t i = 0; i < made_.jobs.size(); ++i) {
      made_.jobs[i].waiting = workers_[made_.state.jobs[i].name].waiting;
      LimitByQuotas(i);
    }
    ShareByNamespaces(view_.quotas_, made_);
    return std::move(made_);
  }

 private:
  // A gateway has made pods for it. One that no gateway begins, as in a namespace without any,
  // would hold what it is granted for ever.
  bool HasBegun(const KnownJob& job) const {
    return job.status.master_number > 0 || jobs_of_pods_.contains({job.namespace_name, job.uid});
  }

  // The kinds that workers request, as many as the autoscaler takes; the others do not decide where
  // a worker has room.
  void NameFurtherResources() {
    std::set<std::string> named;
    for (const auto* pods : {&view_.pods_, &view_.workers_}) {
      for (const auto& [uid, pod] : *pods) {
        for (const auto& [name, amount] : pod.request.further) {
          if (!pod.job_uid.empty() && amount > 0) {
            named.insert(name);
          }
        }
      }
    }
    further_.assign(named.begin(), named.end());
    further_.resize(std::min(further_.size(), elastic::kMaxFurtherResources));
  }

  elastic::Capacity CapacityOf(const Amounts& amounts) const {
    elastic::Capacity capacity = amounts.known;
    for (size_t i = 0; i < further_.size(); ++i) {
      const auto found = amounts.further.find(further_[i]);
      capacity.further[i] = found == amounts.further.end() ? 0 : found->second;
    }
    return capacity;
  }

  // Pods with the same rules share the answer.
  AllowedNodes AllowedBy(const NodeRules& rules) {
    AllowedNodes& allowed = allowed_[rules.key()];
    if (allowed == nullptr) {
      std::vector<bool> answers;
      for (const auto& [name, facts] : view_.nodes_) {
        answers.push_back(rules.Admits(facts.labels));
      }
      allowed = std::make_shared<const std::vector<bool>>(std::move(answers));
    }
    return allowed;
  }

  // What the pods of a job's workers show, or have shown.
  struct Workers {
    const PodFacts* newest = nullptr;
    uint32_t waiting = 0;  // without a node
  };
  void LookAtWorkers() {
    for (const auto& [job, pod] : view_.workers_) {
      workers_[job].newest = &pod;
    }
    for (const auto& [uid, pod] : view_.pods_) {
      if (pod.job_uid.empty() || pod.role != elastic::Role::kWorker) {
        continue;
      }
      Workers& workers = workers_[pod.job_uid];
      if (workers.newest == nullptr || workers.newest->created < pod.created) {
        workers.newest = &pod;
      }
      workers.waiting += pod.node.empty() && !pod.terminating && !pod.over ? 1 : 0;
    }
  }

  ClusterJob Describe(const KnownJob& job) {
    const ProcessesSpec& workers = job.spec.workers;
    ClusterJob described;
    described.name = job.uid;
    described.min = std::max<uint32_t>(1, workers.min.value_or(1));
    described.max =
        std::max(described.min, workers.max.value_or(std::max(1U, job.status.most_workers)));
    described.arrival = job.created;
    described.granted = job.status.grant ? job.status.grant->workers : 0;
    described.can_suspend = job.status.can_suspend;
    described.suspended = job.suspended;
    int pod_priority = workers.priority.high_share >= 0.5 ? kHighPriority : kLowPriority;
    if (const PodFacts* worker = workers_[job.uid].newest) {
      described.worker = CapacityOf(worker->request);
      described.nodes = AllowedBy(worker->rules);
      pod_priority = worker->priority;
    } else {
      described.worker = Requested(workers);
    }
    described.priority = PriorityOf(pod_priority, job.spec.priority);
    described.throughput = job.curve.Points();
    described.measured_from = job.curve.Fewest();
    if (job.status.seconds_left && !described.throughput.empty()) {
      // Not at the rate of this second, which is none while the job stalls.
      described.rows_left = static_cast<double>(*job.status.seconds_left) *
                            elastic::ThroughputAt(described, job.status.running_workers);
    }
    return described;
  }

  static elastic::Capacity Requested(const ProcessesSpec& processes) {
    elastic::Capacity request;
    const auto amount = [&](const char* name, double otherwise) {
      const auto found = processes.resources.requests.find(name);
      return found == processes.resources.requests.end() ? otherwise : found->second.AsDouble();
    };
    request.cpu = amount("cpu", kUnknownCpu);
    request.memory_bytes = static_cast<int64_t>(amount("memory", 0));
    request.gpu = amount("nvidia.com/gpu", 0);
    request.processes = 1;
    return request;
  }

  void AddPod(const std::string& uid, const PodFacts& pod) {
    if (pod.over) {
      return;
    }
    const bool without_master = without_master_.contains(pod.job_uid);
    const bool successor = without_master && IsNeededToSuspend(pod);
    if (without_master && pod.node.empty() && !successor) {
      return;
    }
    const auto job = without_master ? job_index_.end() : job_index_.find(pod.job_uid);
    ClusterProcess process;
    process.name = pod.name;
    process.request = CapacityOf(pod.request);
    process.terminating = pod.terminating || (job != job_index_.end() && Suspended(job->second));
    process.started = pod.created;
    if (!successor) {
      process.priority = pod.priority;
    }
    if (job != job_index_.end()) {
      process.job = job->second;
      process.worker = pod.role == elastic::Role::kWorker;
    }
    if (!pod.node.empty()) {
      const auto node = node_index_.find(pod.node);
      if (node == node_index_.end()) {
        return;  // with a node that is gone
      }
      process.node = node->second;
      if (process.worker && !process.terminating) {
        ++made_.jobs[static_cast<size_t>(process.job)].running;
      }
    } else if (process.worker || process.terminating ||
               (process.job == ClusterProcess::kNone && !RoomWouldHelp(pod))) {
      return;  // a waiting worker is a start that the plan makes anew
    } else {
      process.nodes = AllowedBy(pod.rules);
      if (process.job == ClusterProcess::kNone && !successor) {
        made_.waiting_services.push_back(uid);
      }
    }
    made_.state.processes.push_back(std::move(process));
  }

  // A master was lost while its job was being suspended, and its successor waits: without it the
  // others never end, so it comes before all workers, like a service.
  bool IsNeededToSuspend(const PodFacts& pod) const {
    const auto job = job_index_.find(pod.job_uid);
    return job != job_index_.end() && being_suspended_[static_cast<size_t>(job->second)] &&
           pod.role == elastic::Role::kMaster && pod.node.empty() && !pod.terminating && !pod.over;
  }

  bool Suspended(int job) const { return made_.state.jobs[static_cast<size_t>(job)].suspended; }

  // With what a suspended job would start; what its spec says where this controller did not see it.
  void AddNeeds(const KnownJob& job, int index) {
    ClusterProcess process;
    process.job = index;
    for (const PodFacts& pod : job.needs) {
      process.name = pod.name;
      process.request = CapacityOf(pod.request);
      process.priority = pod.priority;
      process.nodes = AllowedBy(pod.rules);
      made_.state.processes.push_back(process);
    }
    if (job.needs.empty()) {
      process.request = Requested(job.spec.master);
      made_.state.processes.push_back(process);
      process.request = Requested(job.spec.servers);
      made_.state.processes.insert(made_.state.processes.end(),
                                   ServersAtFirst(job.spec).value_or(0), process);
    }
  }

  static bool RoomWouldHelp(const PodFacts& pod) {
    return pod.unschedulable && !pod.rules.HasFurtherRules();
  }

  void LimitByQuotas(size_t index) {
    const Job& job = made_.jobs[index];
    ClusterJob& described = made_.state.jobs[index];
    const Workers& workers = workers_[described.name];
    if (workers.newest == nullptr) {
      return;  // what one needs is not known yet
    }
    double more = described.max;
    for (const auto& [uid, quota] : view_.quotas_) {
      if (quota.namespace_name != job.namespace_name) {
        continue;
      }
      for (const auto& [name, amount] : ByName(workers.newest->request)) {
        const auto left = quota.left.find(name);
        if (left != quota.left.end() && amount > 0) {
          more = std::min(more, std::floor(std::max(0.0, left->second) / amount));
        }
      }
    }
    // Its pods that wait are counted by the quota, too.
    const uint32_t allowed =
        job.running + workers.waiting + static_cast<uint32_t>(std::max(0.0, more));
    described.max = std::max(described.min, std::min(described.max, allowed));
  }

  const ClusterView& view_;
  Snapshot made_;
  std::map<std::string, Workers> workers_;  // by the uid of their job
  std::map<std::string, int> node_index_, job_index_;
  std::set<std::pair<std::string, std::string>> jobs_of_pods_;  // namespaces and uids
  std::set<std::string> without_master_;                        // uids of jobs: IsNeededToSuspend
  std::vector<bool> being_suspended_;  // jobs, by index: their processes have not ended
  std::vector<std::string> further_;   // names, by index in Capacity::further
  std::map<std::string, AllowedNodes> allowed_;
};

ClusterView::Snapshot ClusterView::Make() const {
  return Builder(*this).Build();
}

}  // namespace sluice::k8s
