#include "server/statements/job_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/detached_job.h"
#include "executor/local/job_takeover.h"
#include "planner/plan.pb.h"
#include "server/statements/role_use.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

// Its outcome is stored in the database, not only sent to the client.
bool LeavesSomething(const plan::Plan& plan) {
  return plan.has_train() || (plan.has_predict() && plan.predict().has_table()) ||
         (plan.has_evaluate() && plan.evaluate().has_table());
}

bool OnManyProcesses(const plan::Plan& plan) {
  return plan.has_train() && plan.train().strategy().kind() != plan::Strategy::LOCAL;
}

Result<executor::DetachedJob> Leave(Session& session) {
  executor::DetachedJob detached;
  if (session.cluster() == nullptr) {
    return FailedPrecondition("this session cannot start processes");
  }
  ASSIGN_OR_RETURN(detached.session, session.source().ExportSession());
  detached.room = session.room();
  return detached;
}

// Reasons for a job to have a process of its own.
struct Placement {
  bool async = false;
  bool detaches = false;
  bool outlives_gateway = false;
  bool elsewhere = false;  // its processes are not on this machine
  bool any() const { return async || detaches || outlives_gateway || elsewhere; }
};

Placement PlacementFor(const plan::Plan& plan, const Session& session) {
  return {
      AnswersWithJob(plan, session),
      session.settings().on_disconnect == OnDisconnect::kDetach && LeavesSomething(plan),
      session.is_of_gateway() && OnManyProcesses(plan),
      session.cluster() != nullptr && session.cluster()->is_elsewhere() && OnManyProcesses(plan)};
}

// Jobs whose client does not wait count, too.
Status CheckRoomForJob(const executor::Context& context, const Session& session) {
  catalog::JobStore& jobs = context.catalog.jobs();
  ASSIGN_OR_RETURN(const std::vector<executor::WaitingJob> waiting,
                   executor::FindWaitingJobs(jobs));
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  const size_t run = running.size() - std::min(running.size(), waiting.size());
  if (run < session.most_jobs()) {
    return OkStatus();
  }
  return ResourceExhausted(fmt::format("{} jobs run already, the limit", run))
      .SqlState("53300")
      .Hint("WAIT JOB waits for one; max_statements of the gateway is the limit");
}

// Jobs that the role owns, or has begun as another one.
Result<int64_t> CountJobs(const Session& session, const executor::Context& context) {
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running,
                   context.catalog.JobsFor(context.stop)->Running());
  const std::string& owner = context.catalog.principal().role;
  return std::count_if(running.begin(), running.end(), [&](const catalog::Job& job) {
    return job.state == catalog::JobState::kRunning &&
           (job.user == session.user() || (!owner.empty() && job.owner == owner));
  });
}

// Until the job has its row, from which it is counted.
Status BeginCountedJob(executor::Context& context, Session& session) {
  if (session.role_use() == nullptr) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      RoleUse::Beginning begun,
      session.role_use()->BeginJob(
          session.counted_role(), [&] { return CountJobs(session, context); }, context.stop));
  auto beginning = std::make_shared<std::optional<RoleUse::Beginning>>(std::move(begun));
  context.on_job = [beginning, next = std::move(context.on_job)](int64_t job) {
    beginning->reset();
    if (next) {
      next(job);
    }
  };
  return OkStatus();
}

}  // namespace

Status ResumeLostJobs(Session& session) {
  executor::Context context{session.source(), session.catalog(), session.user(), "",
                            session.stop(),   session.cluster()};
  context.checkpoint_root = session.planner_options().checkpoint_root;
  return executor::TakeOverLostJobs(context).status();
}

bool AnswersWithJob(const plan::Plan& plan, const Session& session) {
  return session.settings().async && LeavesSomething(plan);
}

std::string DescribeJobPlace(const plan::Plan& plan, Session& session) {
  const Placement placement = PlacementFor(plan, session);
  if (!placement.any()) {
    return session.is_of_gateway() && LeavesSomething(plan)
               ? "Job: in the gateway's process; it ends with its client or the gateway"
               : "";
  }
  const Result<executor::DetachedJob> detached = Leave(session);
  if (!detached.ok()) {
    return fmt::format("Job: {}, as it cannot have a process of its own: {}",
                       placement.async ? "none" : "in the process of this session",
                       detached.status().message());
  }
  return fmt::format("Job: in {}; it outlives the gateway{}",
                     placement.elsewhere ? session.cluster()->Describe() : "a process of its own",
                     placement.async ? " and its client, which is answered at once (sluice.async)"
                     : placement.detaches ? " and its client (sluice.on_disconnect)"
                                          : ", and ends with its client");
}

std::string DescribeStart(const plan::Plan& plan, Session& session, const std::stop_token& stop) {
  if (!OnManyProcesses(plan) || session.cluster() == nullptr) {
    return "";
  }
  const Result<elastic::StartForecast> forecast = session.cluster()->Forecast(plan.train(), stop);
  return fmt::format("Start: {}", forecast.ok() ? elastic::DescribeStart(*forecast)
                                                : "not known: " + forecast.status().message());
}

Status RunJob(const plan::Plan& planned, executor::Context& context, Session& session,
              executor::ResultSink& sink, bool waits) {
  if (planned.has_train() || planned.has_predict() || planned.has_evaluate() ||
      planned.has_report()) {
    RETURN_IF_ERROR(context.catalog.AllowStaging());
  }
  if (LeavesSomething(planned)) {
    RETURN_IF_ERROR(BeginCountedJob(context, session));
  }
  Placement placement = PlacementFor(planned, session);
  placement.async = placement.async && !waits;
  if (!placement.any()) {
    return executor::Execute(planned, context, sink);
  }
  plan::Plan plan = planned;
  if (context.plan_with_all_classes) {  // another process cannot plan anew
    ASSIGN_OR_RETURN(plan, context.plan_with_all_classes());
  }
  Result<executor::DetachedJob> detached = Leave(session);
  if (!detached.ok() && placement.async) {
    Status refused = detached.status();
    return std::move(refused)
        .Because("sluice.async is on, and the statement cannot become a job of its own")
        .Hint(
            "SET sluice.async = off, and it is waited for; or COMMIT first, and read no temporary "
            "tables");
  }
  if (!detached.ok() && placement.elsewhere) {
    Status refused = detached.status();
    return std::move(refused)
        .Because(
            "the training's processes are not on this machine, and read what other sessions see")
        .Hint("COMMIT first, and read no temporary tables; or engine.strategy='local'");
  }
  if (!detached.ok()) {
    if (placement.detaches) {
      sink.Notice(fmt::format("the statement is cancelled if its client goes away: {}",
                              detached.status().message()));
    }
    return executor::Execute(plan, context, sink);
  }
  if (placement.async) {
    RETURN_IF_ERROR(CheckRoomForJob(context, session));
    return executor::AnswerWithJob(plan, context, *detached, sink);
  }
  detached->outlives_client = placement.detaches;
  return executor::FollowJob(
      plan, context, *detached,
      [detaches = placement.detaches, elsewhere = placement.elsewhere, &session] {
        return (detaches && session.client_has_gone()) || (elsewhere && session.gateway_ends());
      },
      sink);
}

}  // namespace sluice::server
