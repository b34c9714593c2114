#include "executor/local/train_on_master.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "elastic/fleet/share_reason.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/in_process/datasets.h"
#include "executor/jobs/job_record.h"
#include "executor/local/job_cluster_server.h"
#include "executor/local/job_work_queue.h"
#include "executor/local/local_cluster.h"
#include "executor/local/master.pb.h"

namespace sluice::executor {
namespace {

// A master stops its fleet within two seconds of SIGTERM; after this time it is killed.
constexpr double kMasterGraceSeconds = 4;
// A search also stores its best model first.
constexpr double kSearchGraceSeconds = 10;
// Limit of masters lost in a row without a row trained in between; the first is replaced at once,
// each next one after twice the previous wait. The total is shorter than workers keep trying to
// connect.
constexpr int kLostMasters = 5;
constexpr double kFirstWaitSeconds = 0.1;

// The gateway's side of one job: keeps a master running until one has answered, performs its
// requests to the cluster, and reports the cluster's events to it. Single-threaded, except that
// JobCluster's calls arrive through its inbox.
class MasterKeeper final : public JobCluster {
 public:
  MasterKeeper(const plan::TrainPlan& plan, Context& context, JobRecord& job, LocalCluster& cluster,
               const elastic::ProgressCallback& progress)
      : plan_(plan),
        context_(context),
        job_(job),
        cluster_(cluster),
        progress_(progress),
        endpoint_(fmt::format("job{}", job.id())),
        master_name_(endpoint_.job_name + "-master") {}
  ~MasterKeeper() override { inbox_->Close(); }  // then no call waits for an answer

  Status Run() {
    ASSIGN_OR_RETURN(endpoint_.key.token, elastic::MakeJobToken());
    ASSIGN_OR_RETURN(endpoint_.address, SecretAddress());
    ASSIGN_OR_RETURN(cluster_address_, SecretAddress());
    ASSIGN_OR_RETURN(server_,
                     JobClusterServer::Start(cluster_address_, endpoint_.key.token, *this));
    ASSIGN_OR_RETURN(share_, cluster_.Open(RoomFor(plan_, endpoint_.job_name), Listen()));
    RecordWorkers();
    while (grant_.workers == 0) {  // until there is room
      if (!inbox_->DoNext(job_.stop_token(), ForEver())) {
        return Cancelled("the training was cancelled before there was room for it");
      }
    }
    // Opened here, not in a master, so that all masters of the job read the same data.
    ASSIGN_OR_RETURN(datasets_, OpenDatasets(plan_, context_.source));
    ASSIGN_OR_RETURN(data_, CountedSpec(plan_, datasets_));
    for (int lost = 0;; ++endpoint_.term) {
      const int64_t rows = rows_done_;
      RETURN_IF_ERROR(LaunchMaster());
      const elastic::FleetEvent exit = Serve();
      if (end_.has_value()) {
        job_.set_snapshot_lost(!end_->ok() && datasets_.Lost());
        RETURN_IF_ERROR(end_->status());
        job_.HasSucceeded(**std::move(end_));
        return OkStatus();
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

  // JobCluster: called by the server's threads.
  Status Launch(elastic::Term term, const elastic::ProcessSpec& spec) override {
    return inbox_->Ask([this, term, &spec] { return DoLaunch(term, spec); });
  }
  Status Stop(elastic::Term term, const std::string& name, double grace_seconds) override {
    return inbox_->Ask([this, term, &name, grace_seconds] {
      RETURN_IF_ERROR(Expect(term));
      // An error means it is gone already: its exit was reported, or is about to be.
      static_cast<void>(share_->Stop(name, grace_seconds));
      return Status();
    });
  }
  Status Finish(elastic::Term term, const Result<std::string>& answer) override {
    return inbox_->Ask([this, term, &answer] {
      RETURN_IF_ERROR(Expect(term));
      end_ = answer;
      return Status();
    });
  }
  void Report(elastic::Term term, const elastic::Progress& progress) override {
    inbox_->Offer([this, term, progress] {
      RETURN_IF_ERROR(Expect(term));
      OnProgress(progress);
      return Status();
    });
  }
  void Notice(elastic::Term term, const std::string& text) override {
    inbox_->Offer([this, term, text] {
      RETURN_IF_ERROR(Expect(term));
      job_.Notify(text);
      return Status();
    });
  }

 private:
  static std::chrono::steady_clock::time_point ForEver() {
    return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365);
  }

  LocalCluster::Listener Listen() {
    LocalCluster::Listener listener;
    listener.on_event = [this, inbox = inbox_](const elastic::FleetEvent& event) {
      inbox->Put([this, event] {
        OnEvent(event);
        return Status();
      });
    };
    listener.on_grant = [this, inbox = inbox_](const Room::Grant& grant) {
      inbox->Put([this, grant] {
        OnGrant(grant);
        return Status();
      });
    };
    return listener;
  }

  // Neither leaves a file behind nor can be guessed.
  static Result<std::string> SecretAddress() {
    ASSIGN_OR_RETURN(const std::string secret_name, elastic::MakeJobToken());
    return fmt::format("unix-abstract:sluice-{}", secret_name);
  }

  // A request of a master that has died may be handled after its successor has begun.
  Status Expect(elastic::Term term) const {
    return term == endpoint_.term
               ? Status()
               : Status(Code::kAborted,
                        fmt::format("the master of term {} has been succeeded", term));
  }

  Status LaunchMaster() {
    MasterConfig config;
    config.set_source_url(context_.source.url());
    ASSIGN_OR_RETURN(const catalog::DatabaseLogin login,
                     context_.catalog.LoginForJob(job_.id(), true));
    config.set_catalog_url(login.url);
    config.set_owner(context_.catalog.principal().role);
    config.set_job(job_.id());
    config.set_runner_place(job_.job().runner.place);
    config.set_runner_pid(job_.job().runner.pid);
    config.set_runner_started(job_.job().runner.started);
    *config.mutable_plan() = plan_;
    config.set_address(endpoint_.address);
    config.set_token(endpoint_.key.token);
    config.set_term(endpoint_.term.value());
    config.set_workers(std::max(grant_.workers, 1U));
    config.set_cluster(cluster_address_);
    for (const auto& [name, process] : living_) {
      RunningProcessMessage* running = config.add_living();
      running->set_role(static_cast<int>(process.role));
      running->set_name(process.name);
      running->set_incarnation(process.incarnation.value());
      running->set_server_index(process.server_index.value());
    }
    *config.mutable_dataset() = data_;
    if (datasets_.validation != nullptr) {
      *config.mutable_validation() = datasets_.validation->spec();
    }
    elastic::ProcessSpec spec;
    spec.role = elastic::Role::kMaster;
    spec.name = master_name_;
    spec.config = config.SerializeAsString();
    MasterSecrets secrets;
    secrets.set_source(context_.source.secret());
    secrets.set_catalog(login.secret);
    spec.secret = secrets.SerializeAsString();
    spec.priority = plan_.strategy().priority();
    server_->BeginTerm(endpoint_.term);
    master_exit_.reset();
    RETURN_IF_ERROR(share_->Launch(spec));
    if (endpoint_.term > elastic::Term::First()) {
      job_.Event("master_started", fmt::format("term {}: {} processes of the job live",
                                               endpoint_.term, living_.size()));
    }
    return Status();
  }

  // Works until the master has exited.
  elastic::FleetEvent Serve() {
    bool asked_to_stop = false;
    while (!master_exit_.has_value()) {
      if (!inbox_->DoNext(asked_to_stop ? std::stop_token() : job_.stop_token(), ForEver()) &&
          job_.stop_token().stop_requested() && !asked_to_stop) {
        asked_to_stop = true;
        // An error means it is gone already: its exit is about to be reported.
        static_cast<void>(share_->Stop(
            master_name_, plan_.has_contest() ? kSearchGraceSeconds : kMasterGraceSeconds));
      }
    }
    return *master_exit_;
  }

  // Waits, while handling events of the other processes.
  void Wait(double seconds) {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(seconds));
    while (inbox_->DoNext(job_.stop_token(), until)) {
    }
  }

  void OnEvent(const elastic::FleetEvent& event) {
    const bool exited = event.kind == elastic::FleetEvent::Kind::kExited;
    if (event.name == master_name_) {
      if (exited) {
        master_exit_ = event;
      }
      return;
    }
    if (exited) {
      living_.erase(event.name);
    }
    server_->Report(event);
    RecordWorkers();
  }

  void OnProgress(const elastic::Progress& progress) {
    rows_done_ = std::max(rows_done_, progress.rows_done);
    share_->Report(static_cast<uint32_t>(progress.workers), progress.rows_per_second,
                   static_cast<double>(progress.rows_total - progress.rows_done));
    progress_(progress);
  }

  void OnGrant(const Room::Grant& grant) {
    const bool changes = grant.workers != grant_.workers;
    grant_ = grant;
    RecordWorkers();
    if (changes) {
      job_.Event("workers_granted",
                 fmt::format("the job may have {}{}{}", elastic::CountWorkers(grant.workers),
                             grant.reason.empty() ? "" : ": ", grant.reason));
      elastic::FleetEvent event;
      event.kind = elastic::FleetEvent::Kind::kGranted;
      event.workers = grant.workers;
      server_->Report(event);
    }
  }

  // Records the workers for SHOW JOB, when they have changed.
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

  Status DoLaunch(elastic::Term term, const elastic::ProcessSpec& spec) {
    RETURN_IF_ERROR(Expect(term));
    RETURN_IF_ERROR(share_->Launch(spec));
    living_[spec.name] = {spec.role, spec.name, spec.incarnation, spec.server_index};
    RecordWorkers();
    return Status();
  }

  const plan::TrainPlan& plan_;
  Context& context_;
  JobRecord& job_;
  LocalCluster& cluster_;
  const elastic::ProgressCallback& progress_;
  elastic::JobEndpoint endpoint_;
  std::string cluster_address_;
  const std::string master_name_;
  const std::shared_ptr<JobWorkQueue> inbox_ = std::make_shared<JobWorkQueue>();
  std::map<std::string, elastic::RunningProcess> living_;
  Room::Grant grant_;
  std::optional<catalog::JobWorkers> recorded_;
  std::optional<elastic::FleetEvent> master_exit_;
  int64_t rows_done_ = 0;
  std::optional<Result<std::string>> end_;
  Datasets datasets_;
  catalog::DatasetSpec data_;
  std::unique_ptr<JobClusterServer> server_;
  std::unique_ptr<LocalCluster::Share> share_;  // last: it ends the job's remaining processes first
};

}  // namespace

Room::Request RoomFor(const plan::TrainPlan& plan, const std::string& job_name) {
  const plan::Strategy& strategy = plan.strategy();
  Room::Request request;
  request.name = job_name;
  request.min = strategy.min_workers();
  request.max = strategy.max_workers();
  request.priority = strategy.priority();
  request.cpu = strategy.cpu();
  const int64_t asked = strategy.memory_bytes();
  request.memory_bytes = asked > 0 ? asked : plan.estimated_memory_bytes();
  request.servers = std::max(strategy.parameter_servers(), strategy.max_parameter_servers());
  request.server_memory_bytes = asked > 0 ? asked : plan.estimated_server_memory_bytes();
  return request;
}

Status TrainOnMaster(const plan::TrainPlan& plan, Context& context, JobRecord& job,
                     LocalCluster& cluster, const elastic::ProgressCallback& progress) {
  return MasterKeeper(plan, context, job, cluster, progress).Run();
}

}  // namespace sluice::executor
