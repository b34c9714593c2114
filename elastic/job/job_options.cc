#include <fmt/core.h>

#include <algorithm>

#include "catalog/dataset.pb.h"
#include "elastic/job/further_metrics.h"
#include "elastic/job/job_options_internal.h"
#include "elastic/worker/passes.h"
#include "models/metrics/metric.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

// A worker reports ten times a second while it computes or reads; one batch of a huge model takes
// longer. A lease that ends too early costs a little work, never a row.
constexpr double kLeaseSeconds = 20;
// Three heartbeats. A dead process is detected by its exit, so this is for hung processes and
// disconnected machines; one that was merely slow is fenced and replaced.
constexpr double kSilenceSeconds = 3;
// If epochs do not limit the job: as many as the step limit needs.
constexpr uint32_t kUnlimitedEpochs = 1U << 30;

Status CheckMetric(const plan::TrainPlan& plan) {
  const std::string& metric = plan.early_stopping().metric();
  if (plan.early_stopping().patience() == 0 || metric.empty()) {
    return Status();
  }
  const std::vector<std::string> names = models::Metrics::Names(plan.model());
  if (std::find(names.begin(), names.end(), metric) != names.end() || metric == "loss") {
    return Status();
  }
  Status status = InvalidArgument(fmt::format("there is no metric '{}' to stop by", metric));
  const std::optional<std::string> nearest = NearestName(metric, names);
  if (nearest.has_value()) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *nearest));
  }
  return status;
}

}  // namespace

bool IsSynchronous(const plan::TrainPlan& plan) {
  return plan.strategy().kind() == plan::Strategy::ALL_REDUCE ||
         plan.strategy().mode() == plan::Strategy::SYNCHRONOUS;
}

Result<Master::Options> MasterOptionsOf(const plan::TrainPlan& plan, size_t outputs,
                                        const catalog::DatasetSpec& dataset,
                                        const catalog::DatasetSpec* validation) {
  if (plan.epochs() == 0 && plan.max_steps() == 0) {
    return InvalidArgument("a training needs at least one epoch or a number of steps");
  }
  Master::Options options;
  options.queue.shards = dataset.shards_size();
  options.passes = MakesPasses(plan);
  options.merges = models::IsTrees(plan.model());
  options.queue.epochs = plan.epochs() > 0 && !options.passes ? plan.epochs() : kUnlimitedEpochs;
  options.queue.seed = plan.seed();
  options.queue.shuffle = plan.shuffle() && !options.passes;
  options.queue.lanes = IsSynchronous(plan) && !options.passes
                            ? std::max<uint32_t>(1, plan.strategy().micro_batches())
                            : 0;
  options.queue.max_batches = plan.max_steps();
  options.queue.lease_seconds = kLeaseSeconds;
  options.silence_seconds = kSilenceSeconds;
  if (plan.database_patience_seconds() > 0) {
    options.journal_seconds = plan.database_patience_seconds();
    options.database_seconds = plan.database_patience_seconds();
  }
  options.snapshot_rows = dataset.counted_rows() > 0 ? dataset.counted_rows() : -1;
  // Trees of a part of the rows would not be those of one process.
  options.skip_poison = plan.strategy().skip_poison() && !options.merges;
  options.splits = validation == nullptr && plan.split().kind() != plan::Split::NONE;
  if (plan.strategy().mode() == plan::Strategy::BOUNDED_STALENESS) {
    options.staleness = plan.strategy().staleness();
  }
  options.task = models::TaskOf(plan.model());
  options.outputs = outputs;
  RETURN_IF_ERROR(CheckMetric(plan));
  options.patience = plan.early_stopping().patience();
  options.needs_validation = !plan.early_stopping().chosen();
  options.plateau = plan.early_stopping().plateau();
  options.rate_cuts.assign(plan.rate_cuts().begin(), plan.rate_cuts().end());
  options.metric = plan.early_stopping().metric();
  options.further_metrics = FurtherMetrics(plan);
  options.estimated_rows = std::max(dataset.estimated_rows(), plan.estimated_rows());
  const bool splits = plan.split().kind() != plan::Split::NONE;
  options.evaluation_shards =
      validation != nullptr ? validation->shards_size() : (splits ? dataset.shards_size() : 0);
  return options;
}

}  // namespace sluice::elastic
