#include "executor/pods/job_pods.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/machine.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/in_process/datasets.h"
#include "executor/jobs/job_record.h"
#include "executor/local/job_news.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/new_job.h"
#include "executor/pods/job_fleet.h"
#include "executor/pods/job_status.h"
#include "executor/pods/master_exit.h"
#include "executor/pods/master_journal.h"
#include "executor/pods/master_lease.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "executor/pods/server_budget.h"
#include "executor/pods/snapshot_book.h"
#include "executor/pods/used_memory.h"
#include "executor/training/train_again.h"
#include "executor/training/train_on_processes.h"
#include "k8s/pod_fleet.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// How long a job that starts over waits for its earlier processes.
constexpr double kEndSeconds = 10;

// Numbers of workers of a job: initial and maximal, from its plan.
struct WorkersAsked {
  uint32_t first = 1, most = 1;
  bool all_reduce = false;
};
// `before`: the number that the previous master had; 0: there was none.
WorkersAsked AskedOf(const plan::Strategy& strategy, uint32_t before) {
  WorkersAsked asked;
  asked.first = FirstWorkersOf(strategy);
  asked.most = std::max(asked.first, strategy.max_workers());
  asked.all_reduce = strategy.kind() == plan::Strategy::ALL_REDUCE;
  asked.first = before > 0 ? before : asked.first;
  return asked;
}

// The number of workers that a job should have, over time. A grant counts up to the spec's limit;
// when it is withdrawn the last number stays, until a user scales the job.
class WorkersWanted {
 public:
  explicit WorkersWanted(const WorkersAsked& asked)
      : asked_(asked), workers_(asked.first), most_(asked.most) {}

  uint32_t Update(const JobStatus::Requests& requests) {
    const uint32_t before = std::exchange(most_, requests.most.value_or(most_));
    if (requests.grant) {
      workers_ = requests.grant->workers;
    } else if (before != most_) {
      workers_ = most_;
    }
    const uint32_t workers = std::min(workers_, most_);
    // The members of an all-reduce group were fixed at the beginning.
    return asked_.all_reduce ? std::min(workers, asked_.most) : workers;
  }

 private:
  const WorkersAsked asked_;
  uint32_t workers_, most_;
};

// Receives changes of the TrainingJob while it lives.
class RequestListener {
 public:
  RequestListener(JobStatus& status, JobStatus::OnRequests on_requests) : status_(status) {
    status_.Subscribe(std::move(on_requests));
  }
  ~RequestListener() { status_.Subscribe(nullptr); }
  RequestListener(const RequestListener&) = delete;
  RequestListener& operator=(const RequestListener&) = delete;

 private:
  JobStatus& status_;
};

// A job's data, kept open by this process.
struct HeldData {
  Datasets datasets;
  PodJobData data;
};

// For the run that begins.
Result<HeldData> OpenData(const plan::TrainPlan& plan, Context& context, int64_t job,
                          const elastic::JobEndpoint& run) {
  HeldData held;
  held.data.set_run(run.job_name);
  held.data.set_first_incarnation(run.first_incarnation.value());
  ASSIGN_OR_RETURN(held.datasets, OpenDatasets(plan, context.source));
  ASSIGN_OR_RETURN(*held.data.mutable_train(), CountedSpec(plan, held.datasets));
  if (held.datasets.validation != nullptr) {
    *held.data.mutable_validation() = held.datasets.validation->spec();
  }
  RETURN_IF_ERROR(
      context.catalog.jobs().KeepRecord(job, kDataRecord, held.data.SerializeAsString()));
  return held;
}

// The data that an earlier master opened, if a worker keeps its snapshot alive; nullopt: none does.
Result<std::optional<HeldData>> TakeOverData(Context& context, int64_t job,
                                             const std::string& record) {
  HeldData held;
  if (!held.data.ParseFromString(record)) {
    return Internal("what is recorded of the job's data is damaged");
  }
  ASSIGN_OR_RETURN(const auto snapshots, context.catalog.jobs().Records(job, kSnapshotRecords));
  for (const auto& [name, bytes] : snapshots) {
    HeldSnapshot snapshot;
    if (!snapshot.ParseFromString(bytes)) {
      continue;
    }
    held.data.mutable_train()->set_snapshot(snapshot.train());
    auto train = context.source.HoldDataset(held.data.train());
    if (!train.ok()) {
      log::Debug("snapshot {} has gone: {}", snapshot.train(), train.status().message());
      continue;
    }
    if (held.data.has_validation()) {
      held.data.mutable_validation()->set_snapshot(snapshot.validation());
      auto validation = context.source.HoldDataset(held.data.validation());
      if (!validation.ok()) {
        continue;
      }
      held.datasets.validation = *std::move(validation);
      *held.data.mutable_validation() = held.datasets.validation->spec();
    }
    held.datasets.train = *std::move(train);
    *held.data.mutable_train() = held.datasets.train->spec();
    return std::optional(std::move(held));
  }
  return std::optional<HeldData>();
}

}  // namespace

JobPods::JobPods(KubernetesAccess& access, const PodJobConfig& config, JobStatus& status,
                 MasterLease& lease, MasterExit& exit, Place place)
    : access_(access),
      config_(config),
      status_(status),
      lease_(lease),
      exit_(exit),
      place_(std::move(place)) {}

Result<StartedJob> JobPods::StartJob(Context& /*context*/, JobConfig /*config*/,
                                     JobSecrets /*secrets*/) {
  return FailedPrecondition("the master of a job begins no other job");
}

Status JobPods::Train(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                      const elastic::ProgressCallback& progress) {
  catalog::JobStore& jobs = context.catalog.jobs();
  const plan::Strategy& strategy = plan.strategy();
  ASSIGN_OR_RETURN(k8s::PodShape shape, ShapeOf(config_, plan));
  ASSIGN_OR_RETURN(
      std::unique_ptr<k8s::PodFleet> pods,
      k8s::PodFleet::Start(access_.client(), std::move(shape), config_.uid(), job.stop_token(),
                           [this](const std::stop_token& stop) { return MayWrite(stop); }));
  const std::vector<k8s::PodFleet::Adopted> adopted = pods->adopted();
  const WorkersAsked asked = AskedOf(strategy, WorkersBefore(job.stop_token()));
  status_.Asked(plan.into_name(), strategy.min_workers(), asked.most, asked.all_reduce,
                plan.has_checkpoints());
  JobFleet fleet(std::move(pods), job, status_,
                 {asked.first, strategy.min_workers(), asked.most, ServersOf(strategy)});
  elastic::JobEndpoint endpoint = EndpointOf(config_);
  endpoint.address = place_.address;
  endpoint.term = elastic::Term(place_.term);
  MasterJournal journal(jobs, job.id(), lease_, exit_, job.stop_token());
  ASSIGN_OR_RETURN(const auto records, jobs.Records(job.id(), kDataRecord));
  std::optional<HeldData> held;
  // What was recorded before a suspension referred to readers that are gone.
  const bool resumed = !records.empty() && records.at(kDataRecord).empty();
  if (records.empty()) {
    ASSIGN_OR_RETURN(held, OpenData(plan, context, job.id(), endpoint));
  } else if (!resumed) {
    ASSIGN_OR_RETURN(held, TakeOverData(context, job.id(), records.at(kDataRecord)));
  }
  if (held.has_value()) {
    const std::string& run = held->data.run();
    if (!run.empty()) {
      endpoint.job_name = run;
      endpoint.first_incarnation = elastic::Incarnation(held->data.first_incarnation());
      fleet.EndAdopted(run, 0, job.stop_token());
    }
    for (const k8s::PodFleet::Adopted& pod : adopted) {
      if (pod.identity.role != elastic::Role::kMaster && (run.empty() || IsOfRun(pod.name, run))) {
        endpoint.running.push_back(
            {pod.identity.role, pod.name, pod.identity.incarnation, pod.identity.server_index});
      }
    }
  } else {
    if (!resumed) {
      // These rows cannot be read any more, so what was learnt from them is discarded.
      job.Announce("snapshot_lost", "no process keeps the job's snapshot any more: it starts over");
    }
    if (!fleet.EndAdopted("", kEndSeconds, job.stop_token())) {
      return Cancelled("the training was cancelled");
    }
    RETURN_IF_ERROR(ForgetJournal(journal));
    endpoint.job_name = RunName(endpoint.job_name, place_.term);
    endpoint.first_incarnation = elastic::Incarnation(static_cast<uint64_t>(place_.term) << 32);
    ASSIGN_OR_RETURN(held, OpenData(plan, context, job.id(), endpoint));
  }
  const std::string begins =
      fmt::format("term {}: {} pods of the job live", place_.term, endpoint.running.size());
  job.Event("master_started", begins);
  const bool took_over = place_.term > 1 && !resumed;
  status_.Event(took_over, took_over ? "TookOver" : resumed ? "Resumed" : "Started", begins);
  endpoint.workers = asked.first;
  std::stop_source suspend;
  bool suspended = false;
  std::string why_suspended = "spec.suspend: the job goes on from its checkpoint when it is false";
  WorkersWanted wanted(asked);
  const RequestListener on_requests(status_, [&](const JobStatus::Requests& requests) {
    if (requests.deleted) {  // its keeper may not survive to record it
      const Status requested = jobs.RequestCancel(job.id());
      if (!requested.ok()) {
        log::Debug("job={} need not be cancelled: {}", job.id(), requested.message());
      }
      return std::string();
    }
    const k8s::Grant grant = requests.grant.value_or(k8s::Grant());
    if (!grant.suspend) {  // its workers stay until the checkpoint is written
      fleet.Want(wanted.Update(requests), grant.give_up, grant.nodes, grant.reason);
    }
    if (!requests.suspend) {
      return std::string();
    }
    if (!plan.has_checkpoints()) {
      return std::string(
          "the statement has no engine.checkpoint_dir, so all that was trained would be lost");
    }
    if (grant.suspend && !suspend.stop_requested()) {
      why_suspended = grant.reason;
    }
    suspend.request_stop();
    return std::string();
  });
  SnapshotBook book(jobs, access_.client().clock(), {job.id(), place_.term, place_.node});
  book.Keep(held->data.train().snapshot(), held->data.validation().snapshot());
  const MasterExit::Condition keeps_snapshot(exit_, [&] {
    if (book.KeptElsewhere() || held->datasets.Lost()) {
      return true;
    }
    const Result<bool> handed_over = book.HandedOver();
    return handed_over.ok() && *handed_over;
  });
  ServerBudget budget(
      access_.client(),
      {config_.namespace_name(), config_.uid(), config_.service(), OwnerOf(config_)},
      [this](const std::stop_token& stop) { return MayWrite(stop); });
  if (std::max(ServersOf(strategy), strategy.max_parameter_servers()) > 1) {
    budget.KeepAll();  // a replacement may run already, and hold nothing yet
  }
  TrainingFleet place{fleet, endpoint, journal, held->data.train(),
                      held->data.has_validation() ? &held->data.validation() : nullptr};
  place.suspend = suspend.get_token();
  place.suspended = [&] {
    suspended = true;
    job.Announce("suspended", why_suspended);
    job.SuspendInstead();
  };
  place.held = [&book](const std::string& node, const std::string& snapshot,
                       const std::string& validation) { book.Hear(node, snapshot, validation); };
  UsedMemory memory(
      [&job](const std::string& metric, double bytes) { job.Metric(0, metric, bytes); });
  place.used = [&memory](elastic::Role role, int64_t bytes) { memory.Hear(role, bytes); };
  const Status ended = TrainOnProcesses(plan, context.source, context.catalog, job, place,
                                        [&](const elastic::Progress& now) {
                                          status_.OnProgress(now);
                                          budget.Keep(now.servers, now.servers_complete);
                                          if (progress) {
                                            progress(now);
                                          }
                                        });
  if (!ended.ok() && lease_.IsFollowed(job.stop_token())) {
    // Its servers or its workers have refused it: that is not how the job ends.
    exit_.LeaveToNext(MasterLease::kFollowed);
  }
  job.set_snapshot_lost(!ended.ok() && !suspended && held->datasets.Lost());
  return ended;
}

// One that has been told to end leaves the pods to the next one.
bool JobPods::MayWrite(const std::stop_token& stop) {
  return !exit_.told() && lease_.IsNewest(stop);
}

// 0: this is the first master, or the number is not known.
uint32_t JobPods::WorkersBefore(const std::stop_token& stop) {
  const Result<JobStatus::Now> now = place_.term > 1 ? status_.Look(stop) : NotFound("");
  return now.ok() ? now->granted_workers : 0;
}

Result<elastic::ClusterState> JobPods::State(const std::stop_token& /*stop*/) {
  return FailedPrecondition("the master of a job knows only its own pods");
}

Result<elastic::StartForecast> JobPods::Forecast(const plan::TrainPlan& /*plan*/,
                                                 const std::stop_token& /*stop*/) {
  return FailedPrecondition("the master of a job knows only its own pods");
}

int64_t JobPods::memory_bytes() const {
  return MachineMemory();
}

std::string JobPods::Describe() const {
  return fmt::format("pods in namespace {}", config_.namespace_name());
}

}  // namespace sluice::executor
