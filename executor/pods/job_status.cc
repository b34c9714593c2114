#include "executor/pods/job_status.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "executor/pods/api_metrics.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/stored_model.h"
#include "executor/pods/training_job_work.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_labels.h"
#include "k8s/rfc3339.h"
#include "k8s/rights.h"
#include "k8s/training_job.h"

namespace sluice::executor {
namespace {

constexpr auto kStatusEvery = std::chrono::seconds(1);
// Attempts for a master's last writes: its pod must end soon.
constexpr int kLastWrites = 5;
constexpr auto kLastPause = std::chrono::milliseconds(300);
// The reason of the condition Suspended, where the job could not be.
constexpr char kRefused[] = "Refused";

std::string EndName(catalog::JobState state) {
  switch (state) {
    case catalog::JobState::kSucceeded:
      return std::string(k8s::kConditionComplete);
    case catalog::JobState::kSuspended:
      return std::string(k8s::kConditionSuspended);
    case catalog::JobState::kCancelled:
      return "Cancelled";
    default:
      return std::string(k8s::kConditionFailed);
  }
}

// To four significant digits, for `kubectl get tj`, which shows all that there are.
double Rounded(double value) {
  return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr);
}

}  // namespace

JobStatus::JobStatus(k8s::ApiClient& client, const PodJobConfig& config, int64_t master,
                     std::string master_pod)
    : client_(client),
      namespace_(config.namespace_name()),
      name_(config.training_job()),
      uid_(config.training_job_uid()),
      selector_(fmt::format("{}={},{}={}", k8s::kJobLabel, config.uid(), k8s::kRoleLabel,
                            elastic::RoleName(elastic::Role::kWorker))),
      job_(config.job()),
      master_(master),
      master_pod_(std::move(master_pod)) {
  if (!name_.empty()) {
    events_ = std::make_unique<k8s::EventRecorder>(
        client_, k8s::EventRecorder::By{namespace_, k8s::AccountName(k8s::Account::kMaster),
                                        fmt::format("master-{}", master_)});
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
}

JobStatus::~JobStatus() = default;

void JobStatus::Asked(const std::string& model, uint32_t least, uint32_t most, bool fixed,
                      bool checkpoints) {
  const MutexLock lock(mutex_);
  fixed_ = fixed;
  model_ = model;
  checkpoints_ = checkpoints;
  least_ = least;
  most_ = most;
  dirty_ = true;
}

void JobStatus::Subscribe(OnRequests on_requests) {
  const MutexLock lock(reporting_);
  on_requests_ = std::move(on_requests);
  reported_.reset();
}

void JobStatus::ReportRequests(const Requests& requests) {
  std::string refused;
  {
    const MutexLock lock(reporting_);
    if (!on_requests_ || reported_ == requests) {
      return;
    }
    reported_ = requests;
    refused = on_requests_(requests);
  }
  const MutexLock lock(mutex_);
  dirty_ = dirty_ || refused != not_suspended_;
  not_suspended_ = std::move(refused);
}

Result<JobStatus::Now> JobStatus::NowOf(const k8s::Object& object) {
  ASSIGN_OR_RETURN(const k8s::TrainingJobStatus status, k8s::ParseTrainingJobStatus(object.json));
  Status mistakes;  // a gateway tells them
  const MutexLock lock(mutex_);
  spec_ = k8s::HoldingSpec(object.json, spec_, &mistakes);
  if (spec_->workers.max && scaled_ != spec_->workers.max) {
    scaled_ = spec_->workers.max;
    dirty_ = true;
  }
  return Now{{object.leaving, spec_->suspend || k8s::SuspendedByGrant(status), spec_->workers.max,
              status.grant},
             status.granted_workers};
}

Result<JobStatus::Now> JobStatus::Look(const std::stop_token& stop) {
  const k8s::ObjectAnswer found =
      k8s::GetObject(client_, k8s::kTrainingJobs, namespace_, name_, stop);
  RETURN_IF_ERROR(found.status);
  if (found.object.uid != uid_) {
    return NotFound(fmt::format("the TrainingJob {} is another one by now", name_));
  }
  return NowOf(found.object);
}

void JobStatus::OnPods(const Pods& pods) {
  const MutexLock lock(mutex_);
  dirty_ = dirty_ || !(pods == pods_);
  pods_ = pods;
}

void JobStatus::OnStarted(elastic::Role role) {
  const MutexLock lock(mutex_);
  ++started_[role];
}

void JobStatus::OnEnded(elastic::Role role, const std::string& fate) {
  const MutexLock lock(mutex_);
  ++fates_[{role, fate}];
}

void JobStatus::OnWatchRestarts(std::map<std::string, uint64_t> restarts) {
  const MutexLock lock(mutex_);
  watch_restarts_ = std::move(restarts);
}

std::string JobStatus::Metrics() {
  using Kind = elastic::MetricsText::Kind;
  elastic::MetricsText text;
  AddCalls(client_, text);
  const MutexLock lock(mutex_);
  AddWatchRestarts(watch_restarts_, text);
  text.Add("sluice_rows_total", Kind::kCounter, "Rows trained, in all epochs.", {},
           static_cast<double>(progress_.rows_done));
  text.Add("sluice_rows_per_second", Kind::kGauge, "Rows trained a second.", {},
           progress_.rows_per_second);
  text.Add("sluice_loss", Kind::kGauge, "The training loss.", {}, progress_.loss);
  text.Add("sluice_workers_granted", Kind::kGauge, "Workers that the job may have.", {},
           pods_.wanted.value_or(0));
  text.Add("sluice_pods", Kind::kGauge, "Pods of the job, with a place and without.",
           {{"role", "worker"}, {"state", "placed"}}, pods_.workers);
  text.Add("sluice_pods", Kind::kGauge, "", {{"role", "worker"}, {"state", "waiting"}},
           pods_.waiting);
  text.Add("sluice_pods", Kind::kGauge, "", {{"role", "ps"}, {"state", "placed"}}, pods_.servers);
  for (const auto& [role, count] : started_) {
    text.Add("sluice_pods_started_total", Kind::kCounter, "Pods that have started.",
             {{"role", std::string(elastic::RoleName(role))}}, static_cast<double>(count));
  }
  for (const auto& [end, count] : fates_) {
    text.Add("sluice_pods_ended_total", Kind::kCounter, "Pods that have ended, and how.",
             {{"role", std::string(elastic::RoleName(end.first))}, {"fate", end.second}},
             static_cast<double>(count));
  }
  return text.text();
}

void JobStatus::Event(bool warning, const std::string& reason, const std::string& message) {
  if (events_ != nullptr) {
    events_->Record(k8s::TrainingJobOwner(name_, uid_), warning, reason, message);
  }
}

void JobStatus::OnProgress(const elastic::Progress& progress) {
  const MutexLock lock(mutex_);
  progress_ = progress;
  dirty_ = true;
}

void JobStatus::End(const catalog::Job& row, std::optional<catalog::ModelVersion> stored) {
  if (name_.empty()) {
    return;
  }
  thread_.request_stop();
  thread_.join();
  Event(row.state == catalog::JobState::kFailed, EndName(row.state),
        fmt::format("job {} {}{}", job_, catalog::JobStateName(row.state),
                    row.error.empty() ? "" : ": " + row.error));
  {
    const MutexLock lock(mutex_);
    ended_ = row;
    stored_ = std::move(stored);
  }
  Status written;
  for (int i = 0; i < kLastWrites; ++i) {
    written = Write(true, {});
    if (written.ok()) {
      return;
    }
    std::this_thread::sleep_for(kLastPause);
  }
  log::Warn("job={} trainingjob={} does not say that it has ended: {}", job_, name_,
            written.message());
}

void JobStatus::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool dirty = false;
    {
      const MutexLock lock(mutex_);
      dirty = std::exchange(dirty_, false);
    }
    const Status written = Write(dirty, stop);
    if (!written.ok() && !stop.stop_requested()) {
      log::Warn("job={} trainingjob={} is not written: {}", job_, name_, written.message());
    }
    MutexLock lock(mutex_);
    dirty_ = dirty_ || (dirty && !written.ok());
    changed_.wait_for(lock.native(), stop, kStatusEvery, [] { return false; });
  }
}

Status JobStatus::Write(bool dirty, const std::stop_token& stop) {
  const k8s::ObjectAnswer found =
      k8s::GetObject(client_, k8s::kTrainingJobs, namespace_, name_, stop);
  if (found.fault == k8s::Fault::kNotFound || (found.ok() && found.object.uid != uid_)) {
    Requests gone;
    gone.deleted = true;  // our pod will be deleted, too
    ReportRequests(gone);
    return OkStatus();
  }
  RETURN_IF_ERROR(found.status);
  const Result<Now> now = NowOf(found.object);
  if (now.ok()) {  // a damaged object requests nothing
    ReportRequests(now->requests);
  }
  if (!dirty) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const k8s::TrainingJobStatus before,
                   k8s::ParseTrainingJobStatus(found.object.json));
  k8s::TrainingJobStatus after = before;
  {
    const MutexLock lock(mutex_);
    if (HasEnded(before) && ended_.id == 0) {
      return OkStatus();  // its gateway has ended it, and this master is about to hear of it
    }
    Fill(after, k8s::Rfc3339(WallMicros()));
  }
  // A later master writes the status now.
  const std::optional<std::string> patch =
      k8s::StatusPatch(before, after, found.object.resource_version);
  if (!patch.has_value() || before.master_number > static_cast<uint64_t>(master_)) {
    return OkStatus();
  }
  const k8s::ObjectAnswer written =
      k8s::PatchObject(client_, k8s::kTrainingJobs, namespace_, name_, "status", *patch, stop);
  // Somebody else has just written it: what that says is read first.
  return written.fault == k8s::Fault::kConflict ? Write(dirty, stop) : written.status;
}

void JobStatus::Fill(k8s::TrainingJobStatus& status, const std::string& now) {
  status.job = job_;
  status.master_number = static_cast<uint64_t>(master_);
  status.master_pod = master_pod_;
  status.selector = selector_;
  // The deadline counts from when the job was resumed, as in a Kubernetes Job.
  const bool resumed = ended_.id == 0 && k8s::Holds(status, k8s::kConditionSuspended);
  status.started = status.started.empty() || resumed ? now : status.started;
  if (!model_.empty()) {
    status.model = model_;
    const uint32_t scaled = scaled_.value_or(most_);
    status.most_workers = fixed_ ? std::min(most_, scaled) : scaled;
    status.can_suspend = checkpoints_;
  }
  FillProgress(progress_, status);
  const bool ended = ended_.id > 0;
  const uint32_t workers = ended ? 0 : pods_.workers;
  if (workers != status.running_workers && !ended) {
    k8s::AddScaling(status, {now, status.running_workers, workers,
                             workers > status.running_workers ? "started" : "left"});
  }
  status.granted_workers = pods_.wanted.value_or(status.granted_workers);
  status.running_workers = workers;
  status.running_servers = ended ? 0 : pods_.servers;
  status.waiting_workers = ended ? 0 : pods_.waiting;
  status.waiting_for = ended ? "" : pods_.waiting_for;
  const bool runs = !ended && workers > 0;
  const bool degraded = runs && workers < least_;
  k8s::SetCondition(status, k8s::kConditionQueued, !ended && !runs, runs ? "Placed" : "Waiting",
                    status.waiting_for, now);
  k8s::SetCondition(status, k8s::kConditionRunning, runs, runs ? "Training" : "Waiting", "", now);
  k8s::SetCondition(status, k8s::kConditionDegraded, degraded,
                    degraded ? "TooFewWorkers" : "Enough", "", now);
  const bool taken_back =
      not_suspended_.empty() &&
      std::any_of(status.conditions.begin(), status.conditions.end(), [](const auto& condition) {
        return condition.type == k8s::kConditionSuspended && condition.reason == kRefused;
      });
  if (!not_suspended_.empty() || resumed || taken_back) {
    k8s::SetCondition(status, k8s::kConditionSuspended, false,
                      resumed                  ? "Resumed"
                      : not_suspended_.empty() ? "NotAsked"
                                               : kRefused,
                      not_suspended_, now);
  }
  if (ended) {
    FillEnd(status, now);
  }
}

void JobStatus::FillEnd(k8s::TrainingJobStatus& status, const std::string& now) {
  if (ended_.state == catalog::JobState::kSuspended) {
    k8s::SetCondition(status, k8s::kConditionQueued, false, "Suspended", "", now);
    k8s::SetCondition(status, k8s::kConditionSuspended, true, "Suspended",
                      k8s::SuspendedByGrant(status)
                          ? status.grant->reason
                          : "it goes on from its checkpoint when spec.suspend is false",
                      now);
    return;
  }
  status.ended = now;
  status.seconds_left = 0;
  FillStored(ended_, stored_, status);
  SetEndConditions(ended_.state, ended_.model, ended_.error, now, status);
}

void FillProgress(const elastic::Progress& progress, k8s::TrainingJobStatus& status) {
  if (progress.rows_total > 0) {
    status.percent = std::clamp<int64_t>(100 * progress.rows_done / progress.rows_total, 0, 100);
    status.seconds_left = static_cast<int64_t>(progress.seconds_left);
  }
  if (progress.rows_done > 0) {
    status.loss = Rounded(progress.loss);
    status.rows_per_second = Rounded(progress.rows_per_second);
  }
}

void SetEndConditions(catalog::JobState state, const std::string& model, const std::string& error,
                      const std::string& now, k8s::TrainingJobStatus& status) {
  const bool complete = state == catalog::JobState::kSucceeded;
  if (complete) {
    status.percent = 100;
  }
  k8s::SetCondition(status, k8s::kConditionComplete, complete, complete ? "Stored" : "NotStored",
                    complete ? fmt::format("the model {} is stored", model) : "", now);
  k8s::SetCondition(status, k8s::kConditionFailed, !complete,
                    complete                                 ? "Stored"
                    : state == catalog::JobState::kCancelled ? "Cancelled"
                                                             : "Failed",
                    complete ? "" : error, now);
}

}  // namespace sluice::executor
