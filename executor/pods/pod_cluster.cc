#include "executor/pods/pod_cluster.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_process.pb.h"
#include "executor/local/row_listener.h"
#include "executor/pods/abandoned_grants.h"
#include "executor/pods/api_metrics.h"
#include "executor/pods/database_reach.h"
#include "executor/pods/pod_forecast.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "executor/training/train_report.h"
#include "k8s/api_verbs.h"
#include "k8s/cluster_listing.h"
#include "k8s/rights.h"
#include "k8s/secret_content.h"
#include "k8s/service_spec.h"
#include "k8s/training_job.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// How long a statement's TrainingJob is kept after it has ended.
constexpr int64_t kKeptSeconds = 3600;
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
          [self](const JobKeeper::Job& job, const Status& why) { self->Close(job, why); }, {}));
  TrainingJobs::Hooks hooks;
  hooks.deleted = [self](const std::string& uid) {
    self->keeper_->GiveUp(uid, Cancelled("its TrainingJob was deleted"));
  };
  hooks.suspended = [self](const std::string& uid, bool wanted, bool done) {
    self->keeper_->Suspend(uid, wanted, done);
  };
  hooks.late = [self](const std::string& uid, int64_t seconds) {
    self->keeper_->GiveUp(uid,
                          Status(Code::kDeadlineExceeded,
                                 fmt::format("the training has taken longer than {} seconds, its "
                                             "TrainingJob's activeDeadlineSeconds",
                                             seconds)));
  };
  if (self->options_.begin) {
    hooks.begin = [self](const TrainingJobRequest& request) -> Result<int64_t> {
      if (!request.spec.image.empty() && request.spec.image != self->options_.image) {
        return InvalidArgument(fmt::format("spec.image: this gateway's jobs run {}, as it does",
                                           self->options_.image));
      }
      return self->options_.begin(*self, request);
    };
  }
  ASSIGN_OR_RETURN(self->training_jobs_,
                   TrainingJobs::Start(self->access_->client(), self->options_.namespace_name,
                                       holder, std::move(hooks), {}));
  self->keeper_->Begin();
  self->janitor_ = std::jthread([self, holder](const std::stop_token& stop) {
    AbandonedGrants grants(self->access_->client(), self->options_.namespace_name, holder);
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock<std::mutex> lock(mutex);
    do {
      self->CancelDeleted();
      const Status looked = self->keeper_->leads() ? grants.Look(stop) : OkStatus();
      if (!looked.ok() && !stop.stop_requested()) {
        log::Warn("jobs that a removed controller has suspended may stay so: {}", looked.message());
      }
    } while (!wake.wait_for(lock, stop, kDeletedLook, [&stop] { return stop.stop_requested(); }));
  });
  return cluster;
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
    status.Add(CheckReachableFromPods(context.source.url()));
    if (context.catalog.url() != context.source.url()) {
      status.Add(CheckReachableFromPods(context.catalog.url()));
    }
  } else if (context.source.dialect() != "postgresql") {
    status.Add(CheckReachableFromPods(context.source.url()));
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

Result<std::unique_ptr<JobListener>> PodCluster::StartJob(Context& context, JobConfig config,
                                                          const JobSecrets& secrets) {
  if (!OnProcesses(config.plan()) || config.has_takeover()) {
    return here_->StartJob(context, std::move(config), secrets);
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
  const plan::TrainPlan& plan = config.plan().train();
  catalog::Job job;
  job.kind = "train";
  job.statement = context.statement;
  job.model = plan.into_name();
  job.user = context.user;
  job.started_micros = WallMicros();
  job.answer = AnswerBytes(planner::TrainResult(plan));
  // The master's: not a process on this machine.
  job.runner = {fmt::format("{}{}/{}", kPodsPlace, options_.namespace_name, uid), 1, 0,
                job.started_micros};
  ASSIGN_OR_RETURN(job.id, context.catalog.JobsFor(context.stop)->Create(job));
  Status made = jobs.KeepRecord(job.id, kStatementRecord, config.SerializeAsString());
  if (made.ok()) {
    made = MakeJob(context, config, secrets, *pod_template, job.id, uid);
  }
  if (!made.ok()) {
    static_cast<void>(jobs.Abandon(job.id, WallMicros(), catalog::JobState::kFailed,
                                   made.ToString(), AnswerBytes(made)));
    return made;
  }
  if (context.on_job) {
    context.on_job(job.id);
  }
  return ListenToRow(jobs, job.id);
}

// The TrainingJob that asks for the job, or a new one for the statement.
Result<k8s::Owner> PodCluster::OwnerFor(const Context& context, const JobConfig& config,
                                        const std::string& name, const std::string& secret,
                                        const std::string& uid) {
  k8s::Owner owner{k8s::kTrainingJobs.ApiVersion(), std::string(k8s::kTrainingJobKind),
                   config.training_job(), config.training_job_uid()};
  if (!owner.uid.empty()) {
    return owner;
  }
  const plan::Strategy& strategy = config.plan().train().strategy();
  k8s::TrainingJobSpec spec;
  spec.statement = context.statement;
  spec.source_secret = secret;
  spec.source_key = "config";
  spec.workers.min = std::max<uint32_t>(1, strategy.min_workers());
  spec.workers.max = std::max({1U, strategy.workers(), strategy.max_workers()});
  spec.servers.min = strategy.parameter_servers();
  spec.servers.max = std::max(strategy.parameter_servers(), strategy.max_parameter_servers());
  ASSIGN_OR_RETURN(const k8s::PodRequest request,
                   RequestedPods(strategy.pods(), *spec.workers.max, *spec.servers.max));
  DescribeRequests(request, strategy, spec);
  spec.priority = strategy.priority();
  spec.template_name = strategy.pods().template_name();
  spec.image = options_.image;
  spec.pull_policy = strategy.pods().image_pull_policy();
  spec.ttl_seconds_after_finished = kKeptSeconds;
  const k8s::ObjectAnswer made =
      k8s::CreateAll(access_->client(),
                     {{k8s::kTrainingJobs, options_.namespace_name,
                       k8s::BuildTrainingJob(options_.namespace_name, name, spec,
                                             {{std::string(k8s::kJobLabel), uid}})}},
                     context.stop)
          .at(0);
  if (made.fault == k8s::Fault::kNotFound) {
    return FailedPrecondition("the cluster does not know the kind TrainingJob")
        .Hint("apply what `sluice k8s manifests` prints");
  }
  RETURN_IF_ERROR(made.status);
  owner.name = made.object.name;
  owner.uid = made.object.uid;
  return owner;
}

// Deletes what was created for a job that does not begin after all, except a TrainingJob created by
// a user.
void PodCluster::Forget(const JobConfig& config, const JobKeeper::Job& job) {
  std::vector<k8s::Deletion> deletions;
  if (!job.service_uid.empty()) {
    deletions.push_back({k8s::kServices, options_.namespace_name, job.name, job.service_uid, 1});
  }
  if (config.training_job_uid().empty()) {
    deletions.push_back(
        {k8s::kTrainingJobs, options_.namespace_name, job.owner.name, job.owner.uid, 1});
  }
  for (const k8s::ApiAnswer& answer : k8s::DeleteAll(access_->client(), deletions, {})) {
    if (!answer.ok()) {
      log::Warn("job={} leaves something behind: {}", job.number, answer.status.message());
    }
  }
}

Status PodCluster::MakeJob(const Context& context, const JobConfig& config,
                           const JobSecrets& secrets, const std::string& pod_template,
                           int64_t number, const std::string& uid) {
  k8s::ApiClient& client = access_->client();
  const std::string& where = options_.namespace_name;
  JobKeeper::Job job{uid, PodJobName(number, uid), "", "", options_.image, number};
  job.secret = job.name + "-master";
  ASSIGN_OR_RETURN(job.owner, OwnerFor(context, config, job.name, job.secret, uid));
  const k8s::ObjectAnswer service =
      k8s::CreateAll(client, {{k8s::kServices, where, JobKeeper::ServiceJson(job, where, 0)}},
                     context.stop)
          .at(0);
  if (!service.ok()) {
    Forget(config, job);
    return service.status;
  }
  job.service_uid = service.object.uid;
  PodJobConfig master;
  master.set_job(number);
  master.set_uid(uid);
  ASSIGN_OR_RETURN(std::string token, elastic::MakeJobToken());
  ASSIGN_OR_RETURN(const elastic::JobKey key, elastic::MakeJobKey(std::move(token)));
  master.set_token(key.token);
  master.set_certificate(key.certificate);
  master.set_private_key(key.private_key);
  master.set_source_url(config.source_url());
  master.set_catalog_url(config.catalog_url());
  master.set_owner(config.owner());
  ASSIGN_OR_RETURN(*master.mutable_found_at(), k8s::ServiceAddress(service.object));
  master.set_namespace_name(where);
  master.set_image(options_.image);
  master.set_template_json(pod_template);
  *master.mutable_pods() = config.plan().train().strategy().pods();
  master.set_priority_class(options_.priority_class);
  master.set_service(job.name);
  master.set_service_uid(job.service_uid);
  master.set_training_job(job.owner.name);
  master.set_training_job_uid(job.owner.uid);
  k8s::PodShape shape;
  shape.namespace_name = where;
  shape.owner = OwnerOf(master);
  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = job.secret;
  spec.config = master.SerializeAsString();
  spec.secret = secrets.SerializeAsString();
  const k8s::PodIdentity identity{uid, spec.role, elastic::kNoIncarnation, {}};
  ASSIGN_OR_RETURN(const std::string secret, k8s::BuildSecret(shape, identity, spec, job.secret));
  const k8s::ObjectAnswer kept =
      k8s::CreateAll(client, {{k8s::kSecrets, where, secret}}, context.stop).at(0);
  if (!kept.ok()) {
    Forget(config, job);
    return kept.status;
  }
  {
    const MutexLock lock(mutex_);
    logins_[uid] = {context.catalog.url(), context.catalog.secret()};
  }
  keeper_->Keep(job);
  return OkStatus();
}

Result<TrainReport> PodCluster::Train(const plan::TrainPlan& /*plan*/, Context& /*context*/,
                                      JobRecord& /*job*/,
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
  return ForecastOnPods(plan.strategy(), std::move(shape), std::move(view));
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
  const k8s::ObjectAnswer secret =
      k8s::GetObject(access_->client(), k8s::kSecrets, options_.namespace_name, job.secret, {});
  const auto content = k8s::SecretContent(secret.object);
  PodJobConfig config;
  JobSecrets secrets;
  if (secret.ok() && content.ok() && content->contains("config") && content->contains("secret") &&
      config.ParseFromString(content->at("config")) &&
      secrets.ParseFromString(content->at("secret"))) {
    return {config.catalog_url(), secrets.catalog()};
  }
  return {options_.catalog_url, ""};
}

void PodCluster::Close(const JobKeeper::Job& job, const Status& why) {
  const bool cancelled = why.code() == Code::kCancelled;
  const bool late = why.code() == Code::kDeadlineExceeded;
  const Status outcome =
      late ? why
      : cancelled
          ? Cancelled(fmt::format("the training was cancelled: {}", why.message()))
          : Internal(fmt::format("the job's master could not be kept running: {}", why.message()))
                .Hint("run the statement again; the version in use is untouched");
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
  const Status told = job.owner.kind != k8s::kTrainingJobKind
                          ? OkStatus()
                          : FailTrainingJob(access_->client(), options_.namespace_name, job.owner,
                                            late        ? "DeadlineExceeded"
                                            : cancelled ? "Cancelled"
                                                        : "NoMaster",
                                            outcome.message());
  if (!told.ok()) {
    log::Warn("job={} its TrainingJob does not say that it failed: {}", job.number, told.message());
  }
}

}  // namespace sluice::executor
