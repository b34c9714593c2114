#include "executor/train_on_master.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/job_record.h"
#include "executor/local_cluster.h"
#include "executor/master_wire_internal.h"

namespace sluice::executor {
namespace {

// A master hands its fleet back within two seconds of SIGTERM; after this it is killed.
constexpr double kMasterGraceSeconds = 4;
// So many masters may be lost in a row without a row trained in between; the first is succeeded at
// once, each next one after twice the wait. All of it is shorter than workers go on calling.
constexpr int kLostMasters = 5;
constexpr double kFirstWaitSeconds = 0.1;

// What has happened in the cluster and waits for the job's thread.
struct Incident {
  std::optional<elastic::FleetEvent> event;
  std::string message;  // of the master
  std::optional<SlotArbiter::Grant> grant;
};

class Inbox {
 public:
  void Put(Incident incident) {
    const MutexLock lock(mutex_);
    incidents_.push_back(std::move(incident));
    changed_.notify_all();
  }
  // Nothing: `stop` was requested, or `until` has come, before anything happened.
  std::optional<Incident> Take(const std::stop_token& stop,
                               std::chrono::steady_clock::time_point until) {
    MutexLock lock(mutex_);
    const auto any = [this]() NO_THREAD_SAFETY_ANALYSIS { return !incidents_.empty(); };
    changed_.wait_until(lock.native(), stop, until, any);
    if (incidents_.empty()) {
      return std::nullopt;
    }
    Incident incident = std::move(incidents_.front());
    incidents_.pop_front();
    return incident;
  }

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Incident> incidents_ GUARDED_BY(mutex_);
};

// The gateway's side of one job: keeps a master running until one has answered, does for it what it
// wants of the cluster, and tells it what happens there. One thread.
class MasterKeeper {
 public:
  MasterKeeper(const plan::TrainPlan& plan, Context& context, JobRecord& job,
               const elastic::ProgressCallback& progress)
      : plan_(plan),
        context_(context),
        job_(job),
        progress_(progress),
        endpoint_(fmt::format("job{}", job.id())),
        master_name_(endpoint_.job_name + "-master") {}

  Result<TrainReport> Run() {
    ASSIGN_OR_RETURN(endpoint_.token, elastic::MakeJobToken());
    // No file that could be left behind, and nobody can guess the name.
    ASSIGN_OR_RETURN(const std::string secret_name, elastic::MakeJobToken());
    endpoint_.address = fmt::format("unix-abstract:sluice-{}", secret_name);
    ASSIGN_OR_RETURN(share_, context_.cluster->Open(Request(), Listen()));
    RecordWorkers();
    while (grant_.workers == 0) {  // until there is room
      const std::optional<Incident> incident = inbox_->Take(job_.stop_token(), ForEver());
      if (!incident.has_value()) {
        return Cancelled("the training was cancelled before there was room for it");
      }
      Handle(*incident);
    }
    // Here, not in a master: they stay as they are through all masters of the job.
    ASSIGN_OR_RETURN(datasets_, OpenDatasets(plan_, context_.source));
    ASSIGN_OR_RETURN(data_, DataOf(plan_, datasets_));
    for (int lost = 0;; ++endpoint_.term) {
      const int64_t rows = rows_done_;
      RETURN_IF_ERROR(LaunchMaster());
      const elastic::FleetEvent exit = Serve();
      if (answer_.has_outcome() || answer_.has_error()) {
        job_.set_snapshot_lost(answer_.has_error() && datasets_.Lost());
        return ReadAnswer();
      }
      if (job_.stop_token().stop_requested()) {
        return Cancelled("the training was cancelled");
      }
      lost = rows_done_ > rows ? 1 : lost + 1;
      job_.Event("master_lost",
                 fmt::format("term {}: exit code {}", endpoint_.term, exit.exit_code));
      if (lost > kLostMasters || exit.exit_class == elastic::ExitClass::kConfiguration) {
        return Internal(lost == 1 ? fmt::format("the master process ended with exit code {} and no "
                                                "answer",
                                                exit.exit_code)
                                  : fmt::format("{} masters were lost one after the other, and "
                                                "nothing was trained in between; the last one "
                                                "ended with exit code {}",
                                                lost, exit.exit_code))
            .Hint("run the statement again; the version in use is untouched")
            .Detail(exit.message);
      }
      Wait(lost == 1 ? 0 : std::ldexp(kFirstWaitSeconds, lost - 2));
    }
  }

 private:
  static std::chrono::steady_clock::time_point ForEver() {
    return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365);
  }

  SlotArbiter::Request Request() const {
    const plan::Strategy& strategy = plan_.strategy();
    SlotArbiter::Request request;
    request.name = endpoint_.job_name;
    request.min = strategy.min_workers();
    request.max = strategy.max_workers();
    request.priority = strategy.priority();
    request.cpu = strategy.cpu();
    const int64_t asked = strategy.memory_bytes();
    request.memory_bytes = asked > 0 ? asked : plan_.estimated_memory_bytes();
    request.servers = strategy.parameter_servers();
    request.server_memory_bytes = asked > 0 ? asked : plan_.estimated_server_memory_bytes();
    return request;
  }

  LocalCluster::Listener Listen() {
    LocalCluster::Listener listener;
    listener.on_event = [inbox = inbox_](const elastic::FleetEvent& event) {
      inbox->Put({event, "", std::nullopt});
    };
    listener.on_message = [inbox = inbox_, master = master_name_](const std::string& name,
                                                                  const std::string& bytes) {
      if (name == master) {
        inbox->Put({std::nullopt, bytes, std::nullopt});
      }
    };
    listener.on_grant = [inbox = inbox_](const SlotArbiter::Grant& grant) {
      inbox->Put({std::nullopt, "", grant});
    };
    return listener;
  }

  Status LaunchMaster() {
    endpoint_.living.clear();
    for (const auto& [name, process] : living_) {
      endpoint_.living.push_back(process);
    }
    endpoint_.workers = std::max(grant_.workers, 1U);
    MasterConfig config;
    config.set_source_url(context_.source.url());
    config.set_job(job_.id());
    *config.mutable_plan() = plan_;
    ToConfig(endpoint_, &config);
    *config.mutable_dataset() = data_;
    if (datasets_.validation != nullptr) {
      *config.mutable_validation() = datasets_.validation->spec();
    }
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kMaster;
    spec.name = master_name_;
    spec.config = config.SerializeAsString();
    spec.secret = context_.source.secret();
    spec.priority = plan_.strategy().priority();
    RETURN_IF_ERROR(share_->Launch(spec));
    if (endpoint_.term > elastic::Term::First()) {
      job_.Event("master_started", fmt::format("term {}: {} processes of the job live",
                                               endpoint_.term, living_.size()));
    }
    master_runs_ = true;
    return Status();
  }

  // Until the master has exited.
  elastic::FleetEvent Serve() {
    bool asked_to_stop = false;
    for (;;) {
      const std::optional<Incident> incident =
          inbox_->Take(asked_to_stop ? std::stop_token() : job_.stop_token(), ForEver());
      if (!incident.has_value() && job_.stop_token().stop_requested() && !asked_to_stop) {
        asked_to_stop = true;
        // Not there any more: its exit is on the way.
        static_cast<void>(share_->Stop(master_name_, kMasterGraceSeconds));
      }
      if (incident.has_value()) {
        Handle(*incident);
        if (!master_runs_ && incident->event.has_value()) {
          return *incident->event;
        }
      }
    }
  }

  // Lets time pass, but for what happens to the other processes.
  void Wait(double seconds) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(seconds));
    while (const std::optional<Incident> incident = inbox_->Take(job_.stop_token(), until)) {
      Handle(*incident);
    }
  }

  void Handle(const Incident& incident) {
    if (incident.event.has_value()) {
      OnEvent(*incident.event);
      return;
    }
    if (incident.grant.has_value()) {
      OnGrant(*incident.grant);
      return;
    }
    MasterMessage message;
    if (!message.ParseFromString(incident.message)) {
      return;  // of a master that died while it wrote: the exit says what happened
    }
    switch (message.kind_case()) {
      case MasterMessage::kProgress:
        OnProgress(FromMessage(message.progress()));
        break;
      case MasterMessage::kNotice:
        job_.Notify(message.notice());
        break;
      case MasterMessage::kLaunch:
        Launch(message.launch());
        break;
      case MasterMessage::kStop:
        // Not there any more: its exit has been told, or is on the way.
        static_cast<void>(share_->Stop(message.stop().name(), message.stop().grace_seconds()));
        break;
      default:
        answer_ = std::move(message);
    }
  }

  void OnEvent(const elastic::FleetEvent& event) {
    if (event.name == master_name_) {
      master_runs_ = event.kind != elastic::FleetEvent::Kind::kExited;
      return;
    }
    if (event.kind == elastic::FleetEvent::Kind::kExited) {
      living_.erase(event.name);
    }
    GatewayMessage message;
    *message.mutable_event() = ToMessage(event);
    Tell(message);
    RecordWorkers();
  }

  void OnProgress(const elastic::Progress& progress) {
    rows_done_ = std::max(rows_done_, progress.rows_done);
    share_->Report(static_cast<uint32_t>(progress.workers), progress.rows_per_second,
                   static_cast<double>(progress.rows_total - progress.rows_done));
    progress_(progress);
  }

  void OnGrant(const SlotArbiter::Grant& grant) {
    const bool changes = grant.workers != grant_.workers;
    grant_ = grant;
    RecordWorkers();
    if (changes) {
      elastic::FleetEvent event;
      event.kind = elastic::FleetEvent::Kind::kGranted;
      event.workers = grant.workers;
      GatewayMessage message;
      *message.mutable_event() = ToMessage(event);
      Tell(message);
    }
  }

  // For SHOW JOB, when it has changed.
  void RecordWorkers() {
    catalog::JobWorkers workers;
    workers.now = std::count_if(living_.begin(), living_.end(), [](const auto& process) {
      return process.second.role == elastic::Role::kWorker;
    });
    workers.wanted = grant_.wanted;
    workers.min = plan_.strategy().min_workers();
    workers.max = plan_.strategy().max_workers();
    if (!recorded_ || !(workers == *recorded_)) {
      job_.Workers(workers);
      recorded_ = workers;
    }
  }

  void Launch(const LaunchMessage& launch) {
    const elastic::ProcessSpec spec = FromMessage(launch);
    const Status status = share_->Launch(spec);
    if (status.ok()) {
      living_[spec.name] = {spec.role, spec.name, spec.incarnation, spec.server_index};
    }
    GatewayMessage message;
    message.mutable_launched()->set_id(launch.id());
    ToMessage(status, message.mutable_launched()->mutable_error());
    Tell(message);
    RecordWorkers();
  }

  void Tell(const GatewayMessage& message) {
    if (master_runs_) {
      // A master that has just died: the next one is told what is there.
      static_cast<void>(share_->Send(master_name_, message.SerializeAsString()));
    }
  }

  Result<TrainReport> ReadAnswer() {
    if (answer_.has_error()) {
      return FromMessage(answer_.error());
    }
    const OutcomeMessage& outcome = answer_.outcome();
    job_.job().rows_read = outcome.rows_read();
    job_.job().rows_trained = outcome.rows_trained();
    job_.job().rows_retried = outcome.rows_retried();
    job_.job().rows_skipped = outcome.rows_skipped();
    return FromMessage(outcome, job_.id());
  }

  const plan::TrainPlan& plan_;
  Context& context_;
  JobRecord& job_;
  const elastic::ProgressCallback& progress_;
  elastic::JobEndpoint endpoint_;
  const std::string master_name_;
  const std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::map<std::string, elastic::LivingProcess> living_;
  SlotArbiter::Grant grant_;
  std::optional<catalog::JobWorkers> recorded_;
  bool master_runs_ = false;
  int64_t rows_done_ = 0;
  MasterMessage answer_;
  Datasets datasets_;
  catalog::DatasetSpec data_;
  std::unique_ptr<LocalCluster::Share> share_;  // last: what is left of the job ends first
};

}  // namespace

Result<TrainReport> TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                                  const elastic::ProgressCallback& progress) {
  if (context.cluster == nullptr) {
    return FailedPrecondition("this session cannot start processes")
        .Hint("engine.strategy='local' trains in the session's own process");
  }
  return MasterKeeper(plan, context, job, progress).Run();
}

}  // namespace sluice::executor
