#include "executor/pods/pod_cluster.h"

#include <fmt/core.h>

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "elastic/job/fleet_job.h"
#include "executor/executor.h"
#include "executor/job_answer.h"
#include "executor/job_process.pb.h"
#include "executor/lost_jobs.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "executor/pods/requested_pods.h"
#include "executor/row_listener.h"
#include "k8s/api_verbs.h"
#include "k8s/service_spec.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

bool OnProcesses(const plan::Plan& plan) {
  return plan.has_train() && plan.train().strategy().kind() != plan::Strategy::LOCAL;
}

// The host of postgresql://user@HOST:PORT/database.
std::string_view HostOf(std::string_view url) {
  const size_t begin = url.find("://");
  std::string_view rest = begin == std::string_view::npos ? url : url.substr(begin + 3);
  rest = rest.substr(0, rest.find('/'));
  const size_t at = rest.rfind('@');
  rest = at == std::string_view::npos ? rest : rest.substr(at + 1);
  return rest.starts_with('[') ? rest.substr(1, rest.find(']') - 1)
                               : rest.substr(0, rest.find(':'));
}

bool IsThisMachine(std::string_view host) {
  return host.empty() || host == "localhost" || host == "::1" || host.starts_with("127.") ||
         host.starts_with("%2F") || host.starts_with("/");
}

Status CheckReachable(const std::string& url) {
  if (!url.starts_with("postgresql:") && !url.starts_with("postgres:")) {
    return FailedPrecondition("a SQLite file cannot be read from pods: they share no file system")
        .Hint("train from PostgreSQL, or with engine.strategy='local'");
  }
  if (IsThisMachine(HostOf(url))) {
    return FailedPrecondition(fmt::format("pods cannot reach the database at '{}': for them that "
                                          "is their own machine",
                                          HostOf(url)))
        .Hint("give the gateway a --source with a host that pods know");
  }
  return OkStatus();
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
  std::unique_ptr<PodCluster> cluster(
      new PodCluster(std::move(access), std::move(options), std::move(here)));
  PodCluster* const self = cluster.get();
  k8s::PodShape shape;
  shape.namespace_name = self->options_.namespace_name;
  ASSIGN_OR_RETURN(self->keeper_,
                   JobKeeper::Start(self->access_->client(), std::move(shape),
                                    [self](const JobKeeper::Job& job, const std::string& why) {
                                      self->Close(job, why);
                                    },
                                    {}));
  return cluster;
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
    status.Add(CheckReachable(context.source.url()));
    if (context.catalog.url() != context.source.url()) {
      status.Add(CheckReachable(context.catalog.url()));
    }
  } else if (context.source.dialect() != "postgresql") {
    status.Add(CheckReachable(context.source.url()));
  }
  const plan::TrainPlan& plan = config.plan().train();
  if (plan.has_checkpoints() && !k8s::MountsFolder(pod_template, plan.checkpoints().directory()) &&
      !AsksForFolder(plan.strategy().pods(), plan.checkpoints().directory())) {
    status.Add(FailedPrecondition(
                   fmt::format("no volume of the pods holds '{}'", plan.checkpoints().directory()))
                   .Hint("engine.checkpoint_dir has to lie in a volume of engine.volume, or of the "
                         "administrator's pod template"));
  }
  return status;
}

Result<std::unique_ptr<JobListener>> PodCluster::StartJob(Context& context, JobConfig config,
                                                          const JobSecrets& secrets) {
  if (!OnProcesses(config.plan())) {
    return here_->StartJob(context, std::move(config), secrets);
  }
  const plan::Pods& pods = config.plan().train().strategy().pods();
  Result<std::string> pod_template = TemplateFor(pods, context.stop);
  Status errors = CheckFits(context, config, pod_template.ok() ? *pod_template : "");
  errors.Add(pod_template.status());
  RETURN_IF_ERROR(errors);
  ASSIGN_OR_RETURN(const std::string uid, elastic::MakeJobToken());
  catalog::JobStore& jobs = context.catalog.jobs();
  const plan::TrainPlan& plan = config.plan().train();
  catalog::Job job;
  job.kind = "train";
  job.statement = context.statement;
  job.model = plan.into_name();
  job.user = context.user;
  job.started_micros = WallMicros();
  job.answer = AnswerBytes(planner::TrainResult(plan));
  // Of its master: no process of ours.
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

Status PodCluster::MakeJob(const Context& context, const JobConfig& config,
                           const JobSecrets& secrets, const std::string& pod_template,
                           int64_t number, const std::string& uid) {
  k8s::ApiClient& client = access_->client();
  const std::string& where = options_.namespace_name;
  JobKeeper::Job job{uid, PodJobName(number, uid), "", "", options_.image, number};
  job.secret = job.name + "-master";
  const k8s::ObjectAnswer service =
      k8s::CreateAll(client, {{k8s::kServices, where, JobKeeper::ServiceJson(job, where, 0)}},
                     context.stop)
          .at(0);
  RETURN_IF_ERROR(service.status);
  job.service_uid = service.object.uid;
  PodJobConfig master;
  master.set_job(number);
  master.set_uid(uid);
  ASSIGN_OR_RETURN(*master.mutable_token(), elastic::MakeJobToken());
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
  k8s::PodShape shape;
  shape.namespace_name = where;
  shape.owner = {"v1", "Service", job.name, job.service_uid};
  elastic::ProcessSpec spec;
  spec.role = elastic::Role::kMaster;
  spec.name = job.secret;
  spec.config = master.SerializeAsString();
  spec.secret = secrets.SerializeAsString();
  const k8s::PodIdentity identity{uid, spec.role, elastic::kNobody, 0};
  ASSIGN_OR_RETURN(const std::string secret, k8s::BuildSecret(shape, identity, spec, job.secret));
  const k8s::ObjectAnswer kept =
      k8s::CreateAll(client, {{k8s::kSecrets, where, secret}}, context.stop).at(0);
  if (!kept.ok()) {
    static_cast<void>(k8s::DeleteAll(
        client, {{k8s::kServices, where, job.name, job.service_uid, 1}}, context.stop));
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

std::string PodCluster::Describe() const {
  return fmt::format("pods in namespace {}", options_.namespace_name);
}

void PodCluster::Close(const JobKeeper::Job& job, const std::string& why) {
  Login login{options_.catalog_url, ""};
  {
    const MutexLock lock(mutex_);
    const auto found = logins_.find(job.uid);
    if (found != logins_.end()) {
      login = found->second;
    }
  }
  const Status lost = Internal(fmt::format("the job's master could not be kept running: {}", why))
                          .Hint("run the statement again; the version in use is untouched");
  const auto catalog = catalog::OpenCatalog(login.url, login.secret);
  const Status closed = !catalog.ok() ? catalog.status()
                                      : (*catalog)->jobs().Abandon(
                                            job.number, WallMicros(), catalog::JobState::kFailed,
                                            lost.ToString(), AnswerBytes(lost));
  if (!closed.ok()) {
    log::Error("job={} has no master any more, and that is not recorded: {}", job.number,
               closed.ToString());
  }
}

}  // namespace sluice::executor
