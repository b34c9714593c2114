#include "server/statements/training_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/letter_case.h"
#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/detached_job.h"
#include "executor/local/row_listener.h"
#include "executor/pods/stored_model.h"
#include "executor/pods/training_job_work.h"
#include "parser/parser.h"
#include "planner/plan.pb.h"
#include "planner/planner.h"
#include "server/statements/job_place.h"
#include "server/statements/session.h"
#include "server/statements/statement_scope.h"
#include "server/statements/training_job_login.h"

namespace sluice::server {
namespace {

// Discards output: no client waits, and the job's row says how it ends.
class DiscardingSink final : public executor::ResultSink {
 public:
  void Notice(const std::string& message) override { log::Info("{}", message); }
};

// Attributes that a spec adds to a statement.
class Additions {
 public:
  explicit Additions(parser::TrainStatement& statement) : statement_(statement) {}

  template <typename Value>
  void Add(const std::string& name, Value value) {
    if (Says(name)) {
      return;
    }
    parser::Attribute attribute;
    attribute.name.text = name;
    attribute.value.value = std::move(value);
    statement_.attributes.push_back(std::move(attribute));
  }
  void AddText(const std::string& name, const std::string& text) {
    if (!text.empty()) {
      Add(name, text);
    }
  }
  bool Says(const std::string& name) const {
    return std::any_of(statement_.attributes.begin(), statement_.attributes.end(),
                       [&name](const auto& each) { return LowerAscii(each.name.text) == name; });
  }

 private:
  parser::TrainStatement& statement_;
};

std::string Amounts(const std::map<std::string, k8s::Quantity>& amounts) {
  std::string text;
  for (const auto& [name, amount] : amounts) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, amount.ToString());
  }
  return text;
}

void AddRole(const std::string& role, const k8s::ProcessesSpec& processes, Additions& additions) {
  additions.AddText(fmt::format("engine.{}_resource_request", role),
                    Amounts(processes.resources.requests));
  additions.AddText(fmt::format("engine.{}_resource_limit", role),
                    Amounts(processes.resources.limits));
  if (processes.priority.given) {
    additions.Add(fmt::format("engine.{}_pod_priority", role), processes.priority.high_share);
  }
}

void AddSpec(const k8s::TrainingJobSpec& spec, parser::TrainStatement& statement) {
  Additions additions(statement);
  const k8s::ProcessesSpec& workers = spec.workers;
  // Even for a small table: a TrainingJob means pods.
  additions.Add("engine.num_workers", int64_t{workers.max.value_or(workers.min.value_or(1))});
  if (workers.min) {
    additions.Add("engine.min_workers", int64_t{*workers.min});
  }
  if (workers.max) {
    additions.Add("engine.max_workers", int64_t{*workers.max});
  }
  const uint32_t servers = spec.servers.min.value_or(spec.servers.max.value_or(0));
  if (servers > 0) {
    additions.Add("engine.num_ps", int64_t{servers});
  }
  if (spec.servers.max.value_or(0) > servers) {
    additions.Add("engine.max_ps", int64_t{*spec.servers.max});
  }
  if (spec.priority != 0) {
    additions.Add("engine.priority", int64_t{spec.priority});
  }
  additions.AddText("engine.template", spec.template_name);
  additions.AddText("engine.image_pull_policy", spec.pull_policy);
  std::string volumes;
  for (const k8s::PodVolume& volume : spec.volumes) {
    volumes += fmt::format("{}claim_name={},mount_path={}{}{}", volumes.empty() ? "" : ";",
                           volume.claim, volume.mount_path,
                           volume.sub_path.empty() ? "" : ",sub_path=" + volume.sub_path,
                           volume.read_only ? ",read_only=true" : "");
  }
  additions.AddText("engine.volume", volumes);
  AddRole("master", spec.master, additions);
  AddRole("worker", spec.workers, additions);
  AddRole("ps", spec.servers, additions);
}

// A job on pods whose row has been there for so long without its Service, which is made right after
// it: the gateway that was beginning it has ended.
constexpr int64_t kBeginMicros = 30'000'000;

// The job that has been begun for the TrainingJob, which has no Service; nullopt: none.
// Unavailable: one is being begun.
Result<std::optional<int64_t>> JobBegunFor(const executor::TrainingJobRequest& request,
                                           catalog::JobStore& jobs) {
  ASSIGN_OR_RETURN(const std::optional<int64_t> job, jobs.Requested(request.uid));
  if (!job) {
    return job;
  }
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  const auto found = std::find_if(running.begin(), running.end(),
                                  [&job](const catalog::Job& each) { return each.id == *job; });
  if (found == running.end() || !found->runner.place.starts_with(executor::kPodsPlace)) {
    return job;  // it has ended, or its process has begun it
  }
  if (WallMicros() - found->runner.seen_micros < kBeginMicros) {
    return Unavailable(fmt::format("job {} is about to begin", *job));
  }
  const Status lost = Internal("the gateway that was beginning the job has ended");
  RETURN_IF_ERROR(jobs.Abandon(*job, WallMicros(), catalog::JobState::kFailed, lost.ToString(),
                               executor::AnswerBytes(lost)));
  RETURN_IF_ERROR(jobs.GiveUpRequest(*job));
  return std::optional<int64_t>();
}

// Refuses parts of a spec that no gateway implements.
Status CheckImplemented(const k8s::TrainingJobSpec& spec) {
  Status errors;
  for (const auto& [role, processes] : std::map<std::string, const k8s::ProcessesSpec*>{
           {"master", &spec.master}, {"workers", &spec.workers}, {"servers", &spec.servers}}) {
    if (!processes->template_name.empty()) {
      errors.Add(Unimplemented(fmt::format(
          "spec.{}.template: all pods of a job are made of one template, spec.template", role)));
    }
  }
  return errors;
}

// One whose process was lost, with the gateway that began it, goes on under this one.
Result<executor::TrainingJobRow> FindRow(executor::Cluster& cluster,
                                         const executor::TrainingJobRequest& request,
                                         SourcePool& sources, int64_t job,
                                         const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const SourcePool::Lease lease, LogInFor(request, sources, stop));
  executor::TrainingJobRow row;
  ASSIGN_OR_RETURN(row.job, lease.catalog().jobs().Find(job));
  if (row.job.state == catalog::JobState::kRunning) {
    Session session(lease.source(), lease.catalog(), lease.catalog().principal().role, &cluster);
    RETURN_IF_ERROR(ResumeLostJobs(session));
    ASSIGN_OR_RETURN(row.progress, executor::ProgressOf(job, lease.catalog().jobs()));
  }
  ASSIGN_OR_RETURN(row.stored, executor::StoredBy(row.job, lease.catalog().models()));
  return row;
}

// The process that runs the job looks whether it is to be cancelled, and finds then that it has
// ended.
Result<bool> EndRow(const executor::TrainingJobRequest& request, SourcePool& sources, int64_t job,
                    const Status& why, const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const SourcePool::Lease lease, LogInFor(request, sources, stop));
  catalog::JobStore& jobs = lease.catalog().jobs();
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  const auto found = std::find_if(running.begin(), running.end(),
                                  [job](const catalog::Job& each) { return each.id == job; });
  if (found == running.end()) {
    return true;  // it has ended
  }
  if (found->runner.place.starts_with(executor::kPodsPlace)) {
    return false;
  }
  const bool cancelled = why.code() == Code::kCancelled;
  const Status outcome =
      cancelled ? Cancelled(fmt::format("the training was cancelled: {}", why.message())) : why;
  const Status asked = jobs.RequestCancel(job);
  if (!asked.ok() && asked.code() != Code::kFailedPrecondition) {  // it has ended meanwhile
    return asked;
  }
  RETURN_IF_ERROR(jobs.Abandon(
      job, WallMicros(), cancelled ? catalog::JobState::kCancelled : catalog::JobState::kFailed,
      outcome.ToString(), executor::AnswerBytes(outcome)));
  return true;
}

}  // namespace

Result<int64_t> BeginTrainingJob(executor::Cluster& cluster,
                                 const executor::TrainingJobRequest& request,
                                 SourcePool::Lease& lease,
                                 std::optional<planner::PodsAllowed> allowed) {
  catalog::JobStore& jobs = lease.catalog().jobs();
  ASSIGN_OR_RETURN(const std::optional<int64_t> before, JobBegunFor(request, jobs));
  if (before) {
    return *before;
  }
  RETURN_IF_ERROR(CheckImplemented(request.spec));
  ASSIGN_OR_RETURN(std::vector<parser::Statement> statements,
                   parser::Parse(request.spec.statement));
  if (statements.size() != 1 ||
      !std::holds_alternative<parser::TrainStatement>(statements.front())) {
    return InvalidArgument("spec.statement: one statement that trains is expected");
  }
  auto& statement = std::get<parser::TrainStatement>(statements.front());
  AddSpec(request.spec, statement);
  Session session(lease.source(), lease.catalog(), lease.catalog().principal().role, &cluster);
  if (allowed) {
    session.AllowInPods(*std::move(allowed));
  }
  DiscardingSink sink;
  ASSIGN_OR_RETURN(const auto scope,
                   StatementScope::Begin(request.spec.statement, statement.span, session, sink));
  ASSIGN_OR_RETURN(const plan::Plan plan,
                   planner::MakePlan(statement, session.source(), session.catalog().models(),
                                     session.planner_options()));
  executor::Context context{session.source(),       session.catalog(), session.user(),
                            request.spec.statement, scope->stop(),     &cluster};
  context.acts_as_login = session.acts_as_login();
  int64_t job = 0;
  context.on_job = [&job](int64_t number) { job = number; };
  executor::DetachedJob detached;
  ASSIGN_OR_RETURN(detached.session, session.source().ExportSession());
  detached.training_job = request.name;
  detached.training_job_uid = request.uid;
  Status begun = executor::AnswerWithJob(plan, context, detached, sink);
  if (begun.code() == Code::kAlreadyExists) {  // perhaps another gateway was faster
    ASSIGN_OR_RETURN(const std::optional<int64_t> other, JobBegunFor(request, jobs));
    return other ? Result<int64_t>(*other) : Result<int64_t>(std::move(begun));
  }
  RETURN_IF_ERROR(std::move(begun));
  return job;
}

std::function<executor::TrainingJobSource(executor::Cluster& cluster)> TrainingJobsOf(
    SourcePool& sources, std::optional<planner::PodsAllowed> allowed) {
  return [&sources, allowed = std::move(allowed)](executor::Cluster& cluster) {
    executor::TrainingJobSource of;
    of.begin = [&sources, &cluster, allowed](const executor::TrainingJobRequest& request,
                                             const std::stop_token& stop) -> Result<int64_t> {
      ASSIGN_OR_RETURN(SourcePool::Lease lease, LogInFor(request, sources, stop));
      return BeginTrainingJob(cluster, request, lease, allowed);
    };
    of.find = [&sources, &cluster](const executor::TrainingJobRequest& request, int64_t job,
                                   const std::stop_token& stop) {
      return FindRow(cluster, request, sources, job, stop);
    };
    of.end = [&sources](const executor::TrainingJobRequest& request, int64_t job, const Status& why,
                        const std::stop_token& stop) {
      return EndRow(request, sources, job, why, stop);
    };
    return of;
  };
}

}  // namespace sluice::server
