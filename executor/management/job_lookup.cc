#include <utility>
#include <vector>

#include "base/log.h"
#include "catalog/catalog.h"
#include "catalog/data_source.h"
#include "executor/executor.h"
#include "executor/jobs/lost_jobs.h"
#include "executor/local/job_takeover.h"
#include "executor/management/job_lookup_internal.h"

namespace sluice::executor {

void LookForLostJobs(Context& context) {
  Status marked = TakeOverLostJobs(context).status();
  marked.Add(context.source.DropLeftovers());
  if (!marked.ok() && marked.sqlstate() != "42501") {
    log::Warn("jobs that were lost cannot be marked: {}", marked.ToString());
  }
}

std::string WaitsFor(int64_t id, catalog::JobStore& jobs) {
  const auto waiting = FindWaitingJobs(jobs);
  for (const WaitingJob& one : waiting.ok() ? *waiting : std::vector<WaitingJob>()) {
    if (one.job.id == id) {
      return WhatFor(one);
    }
  }
  return "";
}

Result<catalog::Job> FindJob(int64_t id, Span place, catalog::JobStore& jobs) {
  auto job = jobs.Find(id);
  if (!job.ok()) {
    Status status = job.status();
    return std::move(status).At(place);
  }
  return job;
}

bool IsEpochEvent(const catalog::JobEvent& event) {
  return event.kind == "epoch_done" || event.kind == "evaluation_done";
}

}  // namespace sluice::executor
