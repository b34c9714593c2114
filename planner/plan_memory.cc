#include <fmt/core.h>

#include <algorithm>

#include "models/model.h"
#include "planner/grouped_number.h"
#include "planner/plan_train_internal.h"
#include "planner/training_memory.h"

namespace sluice::planner {
namespace {

// The weight, Adam's two moments, and the gradient.
constexpr int64_t kFloatsPerParameter = 4;

// Place of the attribute that makes a network large.
Span SizeSpan(const BoundTrain& bound) {
  for (const char* name : {"model.hidden_units", "model.dnn_hidden_units"}) {
    if (bound.attributes.Given(name)) {
      return bound.attributes.SpanOf(name);
    }
  }
  return bound.select.span;
}

}  // namespace

void EstimateMemory(const BoundTrain& bound, const models::Network* network,
                    plan::TrainPlan* plan) {
  const TrainingMemory memory =
      network == nullptr
          ? EstimateTreeMemory(*plan, bound.select.schema, bound.statistics)
          : EstimateNetworkMemory(*plan, *network, bound.select.schema, bound.statistics);
  plan->set_estimated_memory_bytes(memory.worker);
  plan->set_estimated_server_memory_bytes(memory.server);
  plan->set_estimated_kept_bytes(memory.kept);
  plan->set_estimated_spilled_bytes(memory.spilled);
}

Status CheckProcessMemory(const BoundTrain& bound, const plan::TrainPlan& plan) {
  const plan::Strategy& strategy = plan.strategy();
  const int64_t limit = strategy.memory_bytes();
  const int64_t worker = plan.estimated_memory_bytes() - plan.estimated_kept_bytes();
  const int64_t server = plan.estimated_server_memory_bytes();
  if (strategy.kind() == plan::Strategy::LOCAL || limit <= 0 || std::max(worker, server) <= limit) {
    return OkStatus();
  }
  const char* const said =
      bound.attributes.Given("engine.memory") ? "engine.memory" : "engine.worker_resource_request";
  return ResourceExhausted(fmt::format("a {} of this training takes about {}, and {} is {}",
                                       worker >= server ? "worker" : "parameter server",
                                       FormatBytes(std::max(worker, server)), said,
                                       FormatBytes(limit)))
      .SqlState("53200")
      .At(bound.attributes.SpanOf(said))
      .Hint(fmt::format("a larger {}, or none: it is estimated then", said));
}

Status CheckForest(const BoundTrain& bound, int64_t limit, const plan::TrainPlan& plan) {
  const int64_t needed = WholeBytes(MostForestBytes(plan));
  if (needed <= limit) {
    return OkStatus();
  }
  Span span = bound.select.span;
  for (const char* name : {"train.num_boost_round", "max_depth", "num_parallel_tree"}) {
    span = bound.attributes.Given(name) ? bound.attributes.SpanOf(name) : span;
  }
  return ResourceExhausted(fmt::format("the trees of training {} may take {}, and --memory-limit "
                                       "is {}",
                                       bound.type->name, FormatBytes(needed), FormatBytes(limit)))
      .SqlState("53200")
      .At(span)
      .Hint(
          "a smaller train.num_boost_round, num_parallel_tree or max_depth, or a larger "
          "--memory-limit");
}

Status CheckMemory(const BoundTrain& bound, models::Network& network, int64_t limit,
                   const plan::TrainPlan& plan) {
  constexpr auto kBytesPerParameter = static_cast<double>(kFloatsPerParameter * sizeof(float));
  double parameters = 0;
  for (const models::DenseTensor& tensor : network.dense()) {
    parameters += static_cast<double>(tensor.size());
  }
  const auto slots = static_cast<int64_t>(network.transform().slots().size());
  const int64_t touched = std::max<int64_t>(bound.statistics.rows, 1) * slots;
  for (const models::EmbeddingTable& table : network.tables()) {
    parameters += static_cast<double>(std::min(table.rows, touched)) * table.dimension;
  }
  const double batch =
      static_cast<double>(plan.batch_size()) * static_cast<double>(network.bytes_per_row());
  const int64_t needed = WholeBytes(parameters * kBytesPerParameter + batch);
  if (needed <= limit) {
    // No batch has more rows than the table, whose number may be an estimate.
    const int64_t rows = std::min<int64_t>(plan.batch_size(), 2 * bound.statistics.rows + 1'000);
    Status fits = network.CheckRows(static_cast<size_t>(rows));
    return fits.ok() ? OkStatus()
                     : std::move(fits)
                           .Because(fmt::format("with a batch of {} rows", rows))
                           .At(bound.attributes.SpanOf("train.batch_size"));
  }
  return ResourceExhausted(fmt::format("training {} takes {}, and --memory-limit is {}",
                                       bound.type->name, FormatBytes(needed), FormatBytes(limit)))
      .SqlState("53200")
      .At(SizeSpan(bound))
      .Detail(fmt::format("{} parameters with their gradients and the optimizer's values, and {} "
                          "for a batch of {} rows",
                          GroupDigits(WholeBytes(parameters)), FormatBytes(WholeBytes(batch)),
                          plan.batch_size()))
      .Hint(
          "smaller layers, fewer buckets or dimensions, a smaller train.batch_size; or a larger "
          "--memory-limit");
}

}  // namespace sluice::planner
