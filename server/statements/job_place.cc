#include "server/statements/job_place.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/cluster.h"
#include "executor/detached_job.h"
#include "executor/executor.h"
#include "executor/lost_jobs.h"
#include "planner/plan.pb.h"
#include "server/statements/session.h"

namespace sluice::server {
namespace {

// Its outcome is in the database, and not only in what the client is sent.
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
  ASSIGN_OR_RETURN(detached.session, session.source().LeaveSession());
  detached.room = session.room();
  return detached;
}

// What nobody waits for is counted, too.
Status CheckRoomForJob(const executor::Context& context, const Session& session) {
  catalog::JobStore& jobs = context.catalog.jobs();
  RETURN_IF_ERROR(executor::MarkLostJobs(jobs));
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, jobs.Running());
  if (running.size() < session.most_jobs()) {
    return OkStatus();
  }
  return ResourceExhausted(fmt::format("{} jobs run already, the limit", running.size()))
      .SqlState("53300")
      .Hint("WAIT JOB waits for one; max_statements of the gateway is the limit");
}

}  // namespace

bool AnswersWithJob(const plan::Plan& plan, const Session& session) {
  return session.settings().async && LeavesSomething(plan);
}

Status RunWhereItBelongs(const plan::Plan& plan, executor::Context& context, Session& session,
                         executor::ResultSink& sink) {
  const bool async = AnswersWithJob(plan, session);
  const bool detaches =
      session.settings().on_disconnect == OnDisconnect::kDetach && LeavesSomething(plan);
  const bool elsewhere =
      session.cluster() != nullptr && session.cluster()->is_elsewhere() && OnManyProcesses(plan);
  const bool outlives_gateway = elsewhere || (session.is_of_gateway() && OnManyProcesses(plan));
  if (!async && !detaches && !outlives_gateway) {
    return executor::Execute(plan, context, sink);
  }
  Result<executor::DetachedJob> detached = Leave(session);
  if (!detached.ok() && async) {
    Status refused = detached.status();
    return std::move(refused)
        .Because("sluice.async is on, and the statement cannot become a job of its own")
        .Hint(
            "SET sluice.async = off, and it is waited for; or COMMIT first, and read no temporary "
            "tables");
  }
  if (!detached.ok() && elsewhere) {
    Status refused = detached.status();
    return std::move(refused)
        .Because(
            "the training's processes are not on this machine, and read what other sessions see")
        .Hint("COMMIT first, and read no temporary tables; or engine.strategy='local'");
  }
  if (!detached.ok()) {
    if (detaches) {
      sink.Notice(fmt::format("the statement is cancelled if its client goes away: {}",
                              detached.status().message()));
    }
    return executor::Execute(plan, context, sink);
  }
  if (async) {
    RETURN_IF_ERROR(CheckRoomForJob(context, session));
    return executor::AnswerWithJob(plan, context, *detached, sink);
  }
  detached->outlives_client = detaches;
  return executor::AttendJob(
      plan, context, *detached,
      [detaches, elsewhere, &session] {
        return (detaches && session.client_has_gone()) || (elsewhere && session.gateway_ends());
      },
      sink);
}

}  // namespace sluice::server
