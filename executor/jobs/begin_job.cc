#include "executor/jobs/begin_job.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "catalog/catalog.h"
#include "executor/cluster.h"
#include "executor/executor.h"
#include "executor/jobs/job_answer.h"
#include "executor/jobs/job_closer.h"
#include "executor/jobs/lost_jobs.h"

namespace sluice::executor {
namespace {

JobRecord::HandOver HandOverTo(const Context& context) {
  if (context.cluster == nullptr) {
    return {};
  }
  return [&closer = context.cluster->closer(), url = context.catalog.url(),
          secret = context.catalog.secret()](const catalog::Job& ended,
                                             const std::vector<catalog::JobEvent>& events) {
    closer.Close({url, secret, ended, events});
  };
}

}  // namespace

Result<std::unique_ptr<JobRecord>> BeginJob(Context& context, const std::string& kind,
                                            const std::string& model, const Schema& columns) {
  if (context.job.has_value()) {
    ASSIGN_OR_RETURN(catalog::Job made, context.catalog.jobs().Find(*context.job));
    if (made.state != catalog::JobState::kRunning) {
      return Status(Code::kAborted,
                    fmt::format("job {} has ended: {}", made.id, JobStateName(made.state)));
    }
    ASSIGN_OR_RETURN(const std::vector<catalog::Job> running, context.catalog.jobs().Running());
    for (const catalog::Job& one : running) {
      if (one.id == made.id) {
        made.runner = one.runner;
      }
    }
    auto record =
        JobRecord::Adopt(context.catalog, std::move(made), context.stop, HandOverTo(context));
    if (record->job().runner.place.starts_with(kPodsPlace) || !context.request.empty()) {
      record->KeepProgress();
    }
    if (context.on_job) {
      context.on_job(record->id());
    }
    return record;
  }
  catalog::Job job;
  job.kind = kind;
  job.statement = context.statement;
  job.model = model;
  job.user = context.user;
  job.request = context.request;
  if (!columns.columns.empty()) {
    job.answer = AnswerBytes(columns);
  }
  ASSIGN_OR_RETURN(auto record, JobRecord::Start(context.catalog, std::move(job), context.stop,
                                                 HandOverTo(context), context.stopped_because));
  if (context.on_job) {
    context.on_job(record->id());
  }
  return record;
}

}  // namespace sluice::executor
