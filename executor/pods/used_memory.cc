#include "executor/pods/used_memory.h"

#include <algorithm>
#include <vector>

#include "catalog/job_store.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

constexpr char kWorkerMetric[] = "worker_peak_bytes";
constexpr char kServerMetric[] = "server_peak_bytes";
constexpr int64_t kJobsLookedThrough = 100;
constexpr int kTrainings = 3;

}  // namespace

void UsedMemory::Hear(elastic::Role role, int64_t peak_bytes) {
  {
    const MutexLock lock(mutex_);
    int64_t& recorded = recorded_[role];
    if (peak_bytes <= recorded + recorded / 10) {
      return;
    }
    recorded = peak_bytes;
  }
  record_(role == elastic::Role::kWorker ? kWorkerMetric : kServerMetric,
          static_cast<double>(peak_bytes));
}

Status RaiseEstimates(catalog::JobStore& jobs, plan::TrainPlan& plan) {
  if (plan.into_name().empty() || plan.estimated_memory_bytes() == 0) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<catalog::Job> newest, jobs.List(kJobsLookedThrough));
  int trainings = 0;
  for (const catalog::Job& job : newest) {
    if (job.kind != "train" || job.model != plan.into_name() ||
        job.state != catalog::JobState::kSucceeded) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::vector<catalog::JobMetric> metrics, jobs.Metrics(job.id));
    for (const catalog::JobMetric& metric : metrics) {
      const auto bytes = static_cast<int64_t>(metric.value);
      if (metric.name == kWorkerMetric) {
        plan.set_estimated_memory_bytes(std::max(plan.estimated_memory_bytes(), bytes));
      } else if (metric.name == kServerMetric && plan.estimated_server_memory_bytes() > 0) {
        plan.set_estimated_server_memory_bytes(
            std::max(plan.estimated_server_memory_bytes(), bytes));
      }
    }
    if (++trainings == kTrainings) {
      break;
    }
  }
  return OkStatus();
}

}  // namespace sluice::executor
