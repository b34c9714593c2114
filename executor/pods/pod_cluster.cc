#include "executor/pods/pod_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/sleep.h"
#include "catalog/catalog.h"
#include "catalog/client_login.h"
#include "catalog/data_source.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/new_job.h"
#include "executor/local/row_listener.h"
#include "executor/pods/abandoned_grants.h"
#include "executor/pods/api_metrics.h"
#include "executor/pods/database_reach.h"
#include "executor/pods/job_objects.h"
#include "executor/pods/pod_forecast.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "executor/pods/used_memory.h"
#include "executor/training/train_report.h"
#include "k8s/api_verbs.h"
#include "k8s/cluster_listing.h"
#include "k8s/pod_template.h"
#include "k8s/rights.h"
#include "k8s/training_job.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// Interval of checking whether a job was deleted while no gateway ran, once its masters have been
// silent for that long.
constexpr auto kDeletedLook = std::chrono::seconds(60);
constexpr double kSilentMicros = kUnseenSeconds * 1e6;

bool OnProcesses(const plan::Plan& plan) {
  return plan.has_train() && plan.train().strategy().kind() != plan::Strategy::LOCAL;
}

}  // namespace

PodCluster::PodCluster(std::unique_ptr<KubernetesAccess> access, Options options,
                       std::unique_ptr<Cluster> here)
    : access_(std::move(access)), options_(std::move(options)), here_(std::move(here)) {}

Result<std::unique_ptr<PodCluster>> PodCluster::Start(std::unique_ptr<KubernetesAccess> access,
                                                      Options options,
                                                      std::unique_ptr<Cluster> here) {
  if (options.image.empty()) {
    return InvalidArgument("the image that the pods of jobs run is not known")
        .Hint("set pods_image to the image that this gateway runs");
  }
  if (options.namespace_name.empty()) {
    options.namespace_name = access->namespace_name();
  }
  RETURN_IF_ERROR(
      k8s::CheckRights(access->client(), k8s::Account::kGateway, options.namespace_name, {}));
  std::unique_ptr<PodCluster> cluster(
      new PodCluster(std::move(access), std::move(options), std::move(here)));
  PodCluster* const self = cluster.get();
  k8s::PodShape shape;
  shape.namespace_name = self->options_.namespace_name;
  ASSIGN_OR_RETURN(const std::string holder, elastic::MakeJobToken());
  ASSIGN_OR_RETURN(
      self->keeper_,
      JobKeeper::Start(
          self->access_->client(), std::move(shape), holder,
          [self](const JobKeeper::Job& job, const Status& why) { self->Close(job, why); },
          [self](const JobKeeper::Job& job, const KeptJob::Trouble& trouble) {
            self->teller_->Tell(job, trouble);
          },
          {}));
  TrainingJobs::Hooks hooks;
  hooks.deleted = [self](const std::string& uid) {
    self->keeper_->GiveUp(uid, Cancelled("its TrainingJob was deleted"));
  };
  hooks.suspended = [self](const std::string& uid, bool wanted, bool done) {
    self->keeper_->Suspend(uid, wanted, done);
  };
  hooks.late = [self](const std::string& uid, const Status& why) {
    self->keeper_->GiveUp(uid, why);
  };
  if (self->options_.training_jobs) {
    hooks.source = self->options_.training_jobs(*self);
    hooks.source.begin = [self, begin = std::move(hooks.source.begin)](
                             const TrainingJobRequest& request,
                             const std::stop_token& stop) -> Result<int64_t> {
      if (!request.spec.image.empty() && request.spec.image != self->options_.image) {
        return InvalidArgument(fmt::format("spec.image: this gateway's jobs run {}, as it does",
                                           self->options_.image));
      }
      return begin(request, stop);
    };
  }
  ASSIGN_OR_RETURN(self->training_jobs_,
                   TrainingJobs::Start(self->access_->client(), self->options_.namespace_name,
                                       holder, std::move(hooks), {}));
  self->teller_ = std::make_unique<TroubleTeller>(
      self->access_->client(), self->options_.namespace_name, self->training_jobs_->events(),
      [self](const JobKeeper::Job& job) { return self->LoginOf(job); });
  self->keeper_->Begin();
  self->janitor_ = std::jthread([self](const std::stop_token& stop) {
    AbandonedGrants grants(self->access_->client(), self->options_.namespace_name);
    do {
      self->CancelDeleted();
      const Status looked = self->keeper_->leads() ? grants.Look(stop) : OkStatus();
      if (!looked.ok() && !stop.stop_requested()) {
        log::Warn("jobs that a removed controller has suspended may stay so: {}", looked.message());
      }
    } while (SleepFor(kDeletedLook, stop));
  });
  return cluster;
}

PodCluster::~PodCluster() {
  if (keeper_ != nullptr) {
    keeper_->Rest();  // it reports to the others, which ask it
  }
}

// Cancels jobs whose TrainingJobs and other objects were deleted while no gateway ran to notice.
void PodCluster::CancelDeleted() {
  if (options_.catalog_url.empty()) {
    return;
  }
  const auto catalog = catalog::OpenCatalog(options_.catalog_url);
  const auto running = catalog.ok() ? (*catalog)->jobs().Running()
                                    : Result<std::vector<catalog::Job>>(catalog.status());
  if (!running.ok()) {
    log::Warn("jobs on pods that were deleted are not looked for: {}", running.status().message());
    return;
  }
  const std::string place = fmt::format("{}{}/", kPodsPlace, options_.namespace_name);
  for (const catalog::Job& job : *running) {
    const auto silent = static_cast<double>(WallMicros() - job.runner.seen_micros);
    if (job.state != catalog::JobState::kRunning || !job.runner.place.starts_with(place) ||
        silent < kSilentMicros || keeper_->Keeps(job.runner.place.substr(place.size()))) {
      continue;
    }
    const Status outcome =
        Cancelled("the training was cancelled: its objects in Kubernetes were deleted");
    const Status closed =
        (*catalog)->jobs().Abandon(job.id, WallMicros(), catalog::JobState::kCancelled,
                                   outcome.ToString(), AnswerBytes(outcome));
    if (!closed.ok()) {
      log::Warn("job={} was deleted, and that is not recorded: {}", job.id, closed.ToString());
    }
  }
}

Result<std::string> PodCluster::TemplateFor(const plan::Pods& pods,
                                            const std::stop_token& stop) const {
  const std::string& name = pods.template_name();
  if (name.empty()) {
    return options_.template_json;
  }
  const k8s::ObjectAnswer found =
      k8s::GetObject(access_->client(), k8s::kPodTemplates, options_.namespace_name, name, stop);
  if (found.fault == k8s::Fault::kNotFound) {
    return FailedPrecondition(fmt::format("there is no PodTemplate '{}' in namespace {}", name,
                                          options_.namespace_name))
        .Hint("`kubectl get podtemplates` lists those that an administrator has made");
  }
  RETURN_IF_ERROR(found.status);
  return k8s::TemplateOf(found.object);
}

Status PodCluster::CheckFits(const Context& context, const JobConfig& config,
                             const std::string& pod_template) const {
  Status status;
  if (!options_.on_this_machine) {
    status.Add(CheckReachableFromPods(config.source_url()));
    if (context.catalog.url() != config.source_url()) {
      status.Add(CheckReachableFromPods(context.catalog.url()));
    }
  } else if (context.source.dialect() != "postgresql") {
    status.Add(CheckReachableFromPods(config.source_url()));
  }
  const plan::TrainPlan& plan = config.plan().train();
  if (plan.has_checkpoints() && !k8s::MountsFolder(pod_template, plan.checkpoints().directory()) &&
      !RequestsFolder(plan.strategy().pods(), plan.checkpoints().directory())) {
    status.Add(FailedPrecondition(
                   fmt::format("no volume of the pods holds '{}'", plan.checkpoints().directory()))
                   .Hint("engine.checkpoint_dir has to lie in a volume of engine.volume, or of the "
                         "administrator's pod template"));
  }
  return status;
}

Result<StartedJob> PodCluster::StartJob(Context& context, JobConfig config, JobSecrets secrets) {
  if (!OnProcesses(config.plan()) || config.has_row()) {
    return here_->StartJob(context, std::move(config), std::move(secrets));
  }
  if (options_.pod_login) {
    ASSIGN_OR_RETURN(const catalog::DatabaseLogin login,
                     options_.pod_login({config.source_url(), secrets.source()}));
    config.set_source_url(login.url);
    secrets.set_source(login.secret);
  }
  const plan::Pods& pods = config.plan().train().strategy().pods();
  Result<std::string> pod_template = TemplateFor(pods, context.stop);
  Status errors = CheckFits(context, config, pod_template.ok() ? *pod_template : "");
  errors.Add(pod_template.status());
  RETURN_IF_ERROR(errors);
  std::string uid = config.training_job_uid();
  if (uid.empty()) {
    ASSIGN_OR_RETURN(uid, elastic::MakeJobToken());
  }
  catalog::JobStore& jobs = context.catalog.jobs();
  RETURN_IF_ERROR(RaiseEstimates(jobs, *config.mutable_plan()->mutable_train()));
  // The master's: not a process on this machine.
  ASSIGN_OR_RETURN(
      const int64_t job,
      MakeJobRow(config, context,
                 {fmt::format("{}{}/{}", kPodsPlace, options_.namespace_name, uid), 1, 0, 0}));
  const auto prepare = [&]() -> Status {
    ASSIGN_OR_RETURN(catalog::DatabaseLogin login, context.catalog.LoginForJob(job, false));
    const bool is_ours = login.url == context.catalog.url();
    login = catalog::WithPasswordOfFile(std::move(login));
    if (!login.secret.empty() && is_ours) {
      log::Warn(
          "job={} its pods get this process's own password of the database: nobody has run there "
          "what `sluice setup` prints",
          job);
    }
    config.set_catalog_url(login.url);
    secrets.set_catalog(login.secret);
    return jobs.KeepRecord(job, kStatementRecord, config.SerializeAsString());
  };
  const Status recorded = prepare();
  const NewJob begun{context.statement, config, secrets, *pod_template, job, uid};
  Result<BegunJob> created =
      recorded.ok()
          ? CreateJobObjects(access_->client(),
                             {options_.namespace_name, options_.image, options_.priority_class},
                             begun, context.stop)
          : Result<BegunJob>(recorded);
  if (!created.ok()) {
    AbandonNewJob(jobs, job, created.status());
    return created.status();
  }
  {
    const MutexLock lock(mutex_);
    logins_[uid] = {context.catalog.url(), context.catalog.secret()};
  }
  keeper_->Keep(created->job, std::move(created->first_pods), std::move(created->secret));
  return StartedJob{job, ListenToRow(jobs, job)};
}

Status PodCluster::Train(const plan::TrainPlan& /*plan*/, Context& /*context*/, JobRecord& /*job*/,
                         const elastic::ProgressCallback& /*progress*/) {
  return FailedPrecondition(
             "pods read the rows on connections of their own, which cannot see what "
             "only this session sees")
      .Hint("COMMIT first, and read no temporary tables; or train with engine.strategy='local'");
}

Result<elastic::ClusterState> PodCluster::State(const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const k8s::ClusterView view, k8s::ListCluster(access_->client(), stop));
  return view.Make().state;
}

Result<elastic::StartForecast> PodCluster::Forecast(const plan::TrainPlan& plan,
                                                    const std::stop_token& stop) {
  k8s::PodShape shape;
  shape.namespace_name = options_.namespace_name;
  shape.image = options_.image;
  shape.priority_class = options_.priority_class;
  ASSIGN_OR_RETURN(shape.template_json, TemplateFor(plan.strategy().pods(), stop));
  ASSIGN_OR_RETURN(k8s::ClusterView view, k8s::ListCluster(access_->client(), stop));
  return ForecastOnPods(plan, std::move(shape), std::move(view));
}

void PodCluster::AddMetrics(elastic::MetricsText& text) {
  AddCalls(access_->client(), text);
  std::map<std::string, uint64_t> restarts = keeper_->watch_restarts();
  for (const auto& [reason, count] : training_jobs_->watch_restarts()) {
    restarts[reason] += count;
  }
  AddWatchRestarts(restarts, text);
  text.Add("sluice_jobs_on_pods", elastic::MetricsText::Kind::kGauge,
           "Jobs whose masters are kept running.", {}, static_cast<double>(keeper_->jobs()));
  text.Add("sluice_job_keeper_leads", elastic::MetricsText::Kind::kGauge,
           "1: this gateway keeps them running; 0: another gateway of the namespace does.", {},
           keeper_->leads() ? 1 : 0);
}

void PodCluster::ForgetJob(const catalog::JobRunner& runner) {
  keeper_->Forget(runner.place.substr(runner.place.rfind('/') + 1),
                  Cancelled("CANCEL JOB while it was suspended"));
}

std::string PodCluster::Describe() const {
  return fmt::format("pods in namespace {}", options_.namespace_name);
}

// From the job's Secret if this process has not begun the job.
PodCluster::Login PodCluster::LoginOf(const JobKeeper::Job& job) {
  {
    const MutexLock lock(mutex_);
    const auto found = logins_.find(job.uid);
    if (found != logins_.end()) {
      return found->second;
    }
  }
  PodJobConfig config;
  JobSecrets secrets;
  return ReadJobSecret(access_->client(), options_.namespace_name, job.secret, config, secrets, {})
                 .ok()
             ? Login{config.catalog_url(), secrets.catalog()}
             : Login{options_.catalog_url, ""};
}

void PodCluster::Close(const JobKeeper::Job& job, const Status& why) {
  const bool cancelled = why.code() == Code::kCancelled;
  const bool late = why.code() == Code::kDeadlineExceeded;
  const std::string& hint = why.diagnostics().front().hint;
  const Status outcome =
      late ? why
      : cancelled
          ? Cancelled(fmt::format("the training was cancelled: {}", why.message()))
          : Internal(fmt::format("the job's master could not be kept running: {}", why.message()))
                .Hint(hint.empty() ? "run the statement again; the version in use is untouched"
                                   : hint);
  const Login login = LoginOf(job);
  const auto catalog = catalog::OpenCatalog(login.url, login.secret);
  const Status closed = !catalog.ok()
                            ? catalog.status()
                            : (*catalog)->jobs().Abandon(job.number, WallMicros(),
                                                         cancelled ? catalog::JobState::kCancelled
                                                                   : catalog::JobState::kFailed,
                                                         outcome.ToString(), AnswerBytes(outcome));
  if (!closed.ok()) {
    log::Error("job={} has no master any more, and that is not recorded: {}", job.number,
               closed.ToString());
  }
  if (job.owner.kind != k8s::kTrainingJobKind) {
    return;
  }
  const std::string reason = late ? "DeadlineExceeded" : cancelled ? "Cancelled" : "NoMaster";
  training_jobs_->events().Record(job.owner, !cancelled, reason, outcome.message());
  const Status told = FailTrainingJob(access_->client(), options_.namespace_name, job.owner, reason,
                                      outcome.message());
  if (!told.ok()) {
    log::Warn("job={} its TrainingJob does not say that it failed: {}", job.number, told.message());
  }
}

}  // namespace sluice::executor
