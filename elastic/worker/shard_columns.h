#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "models/features/feature_transform.h"

namespace sluice::elastic {

// A shard in the form that models use: transformed and split.
struct ShardRows {
  models::FeatureBatch train;
  models::FeatureBatch validation;
  int64_t rows_read = 0;
  // Sum over the rows of a hash of each row's features: independent of their order. 0 if the shard
  // will not be read again.
  uint64_t checksum = 0;
};

// The columns of a batch one after the other as they are in memory, behind a head that says how
// long each is. Only for this process, or for one like it on this machine.

// Calls `write` once, with all pieces in order.
Result<uint64_t> WriteColumns(
    const models::FeatureBatch& rows,
    const std::function<Result<uint64_t>(std::span<const std::string_view>)>& write);
// Asks `read` for the pieces, in order; `bytes`: of all. Internal: they are not a batch.
Status ReadColumns(uint64_t bytes, const std::function<Status(std::span<char>)>& read,
                   models::FeatureBatch* rows);

}  // namespace sluice::elastic
