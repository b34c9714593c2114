#include "elastic/worker/batches_ahead.h"

#include <algorithm>
#include <utility>

#include "elastic/worker/row_selection.h"

namespace sluice::elastic {
namespace {

// A shard of 10,000 rows of 100 numbers has 4 MB; while it is trained, its rows are held twice.
constexpr size_t kMostBytes = size_t{16} << 20;

size_t BytesOf(const models::ParameterView& view) {
  size_t bytes = 0;
  for (const models::RowSet& rows : view.tables) {
    bytes += rows.ids.size() * sizeof(int64_t) + rows.positions.size() * sizeof(uint32_t);
  }
  return bytes;
}

}  // namespace

void BatchesAhead::Make(const models::FeatureBatch& rows, std::vector<uint32_t> order,
                        size_t batch_rows, BatchIndex first, models::Network* network) {
  order_ = std::move(order);
  first_ = first;
  size_t bytes = 0;
  for (BatchIndex at = first; at.index() * batch_rows < order_.size() && bytes < kMostBytes; ++at) {
    Batch& batch = batches_.emplace_back();
    GatherBatch(rows, order_, batch_rows, at, &batch.features);
    network->CollectIds(batch.features, &batch.view);
    batch.there = true;
    bytes += batch.features.Bytes() + BytesOf(batch.view);
  }
}

bool BatchesAhead::Take(BatchIndex batch, models::FeatureBatch* features,
                        models::ParameterView* view) {
  if (batch < first_ || batch - first_ >= static_cast<int64_t>(batches_.size())) {
    return false;
  }
  Batch& made = batches_[static_cast<size_t>(batch - first_)];
  if (!std::exchange(made.there, false)) {
    return false;
  }
  std::swap(*features, made.features);
  view->tables.resize(made.view.tables.size());
  for (size_t t = 0; t < view->tables.size(); ++t) {  // the memory of the values stays
    std::swap(view->tables[t].ids, made.view.tables[t].ids);
    std::swap(view->tables[t].positions, made.view.tables[t].positions);
  }
  return true;
}

}  // namespace sluice::elastic
