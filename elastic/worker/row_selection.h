#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "elastic/ids.h"
#include "models/features/feature_transform.h"

namespace sluice::elastic {

// Copies the rows `rows` of `from`, in that order, into a batch. `out` is overwritten; its memory
// is reused.
void GatherRows(const models::FeatureBatch& from, std::span<const uint32_t> rows,
                models::FeatureBatch* out);

// The rows of one of a shard's batches, of `batch_rows` rows each in the order of `order`.
void GatherBatch(const models::FeatureBatch& rows, std::span<const uint32_t> order,
                 size_t batch_rows, BatchIndex batch, models::FeatureBatch* out);

// The order in which the rows of a shard are trained in one epoch: a seeded shuffle, or the
// table's.
std::vector<uint32_t> RowOrder(size_t rows, uint64_t seed, Epoch epoch, ShardId shard,
                               bool shuffle);

// The sum of the rows' hashes; never 0 for a batch with rows.
uint64_t ChecksumOf(const models::FeatureBatch& rows);

}  // namespace sluice::elastic
