#include "elastic/worker/lease.h"

#include <fmt/core.h>

#include <cmath>
#include <utility>

#include "elastic/queue/shard_order.h"
#include "elastic/worker/row_selection.h"

namespace sluice::elastic {

Lease::Lease(Task taken) : task(std::move(taken)), next(task.first_batch) {
  report.task = task.id;
  report.next_batch = next;
}

void Lease::Become(Task dealt) {
  task = std::move(dealt);
  report.task = task.id;
  next = task.first_batch;
  report.next_batch = next;
}

void Lease::Begin(std::shared_ptr<const ShardRows> read, std::vector<uint32_t> row_order,
                  size_t rows_per_batch, int64_t rows_read) {
  rows = std::move(read);
  order = std::move(row_order);
  batch_rows = rows_per_batch;
  batches = static_cast<int64_t>((order.size() + batch_rows - 1) / batch_rows);
  report.rows_read = rows_read;
  report.batches = batches;
  report.shard_rows = static_cast<int64_t>(order.size());
  report.checksum = rows->checksum;
}

BatchIdentity Lease::Identity(BatchIndex batch) const {
  return {task.epoch,    task.shard, batch,
          task.attempt,  task.round, task.lane,
          task.lanes,    task.range, batch + 1 == EndOf(batches),
          task.rate_cuts};
}

void Lease::Gather(BatchIndex batch, models::FeatureBatch* out) const {
  GatherBatch(rows->train, order, batch_rows, batch, out);
}

void Lease::MakeBatch(BatchIndex batch, models::Network* network, models::FeatureBatch* features,
                      models::ParameterView* view) {
  if (ahead == nullptr || !ahead->Take(batch, features, view)) {
    Gather(batch, features);
    network->CollectIds(*features, view);
  }
}

uint64_t Lease::StepSeed() const {
  return MixSeeds(task.epoch.value(), task.shard.index(), next.index());
}

Status Lease::Count(const models::LossSum& loss) {
  RETURN_IF_ERROR(CheckLoss(loss.loss, Identity(next)));
  const auto size = static_cast<int64_t>(batch_rows);
  const auto begin = static_cast<int64_t>(next.index() * batch_rows);
  report.rows += std::min<int64_t>(begin + size, static_cast<int64_t>(order.size())) - begin;
  report.loss += CountedSum(loss.loss);
  report.weight += CountedSum(loss.weight);
  report.next_batch = ++next;
  return OkStatus();
}

void Lease::CutShort(BatchIndex last_batch) {
  // None of the batches before it is the shard's last, which may be shorter.
  const int64_t rows_before = (last_batch - task.first_batch) * static_cast<int64_t>(batch_rows);
  const double share =
      report.rows > 0 ? static_cast<double>(rows_before) / static_cast<double>(report.rows) : 0;
  report.rows = rows_before;
  report.rows_retried = std::min(report.rows_retried, rows_before);
  report.loss *= share;
  report.weight *= share;
  report.next_batch = last_batch;
  task.last_batch = last_batch;
  next = last_batch;
}

Status CheckLoss(double loss, const BatchIdentity& batch) {
  if (!std::isnan(loss)) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("the loss is no number (epoch {}, shard {}, batch {})",
                                     batch.epoch, batch.shard, batch.batch))
      .SqlState("22003")
      .Hint(
          "a network gives NaN for ids beyond a table of its own, for 0 / 0 and for the logarithm "
          "of what is below 0; a smaller learning rate helps where it happens late");
}

}  // namespace sluice::elastic
