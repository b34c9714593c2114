#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "models/features/time_cell.h"

namespace sluice::plan {
class Split;
}
namespace sluice::catalog {
class DatasetSpec;
class ShardRange;
}  // namespace sluice::catalog

namespace sluice::elastic {

// Decides for each row of a shard whether it is a validation row, from the plan and the row alone,
// so that every process that reads the shard splits it the same way. Immutable, thread-safe.
class SplitRule {
 public:
  static Result<SplitRule> Make(const plan::Split& split);

  // The columns that the rule reads.
  const std::vector<std::string>& columns() const { return columns_; }
  bool splits() const { return kind_ != Kind::kNone; }
  // `place`: of the row in the dataset (PlacesOf). `columns`: the rule's; their `row`th cells
  // belong to the row.
  bool IsValidation(int64_t place, std::span<const RowBatch::Column* const> columns,
                    size_t row) const;

 private:
  enum class Kind { kNone, kRandom, kHash, kTime, kColumn };
  bool IsLate(std::span<const RowBatch::Column* const> columns, size_t row) const;

  Kind kind_ = Kind::kNone;
  std::vector<std::string> columns_;
  uint64_t seed_ = 0;
  uint64_t from_ = 0;      // hashes from it on
  uint64_t below_ = 0;     // and below it are validation
  uint64_t together_ = 0;  // not 0: runs of this many rows are assigned to the folds_ in turn; the
                           // fold_'s validate
  uint64_t folds_ = 1;
  uint64_t fold_ = 0;
  double threshold_ = 0;
  std::optional<models::TimeFormat> time_format_;  // of a column that is no timestamp
};

// By shard: the place in the dataset of its first row; the others follow. If the cut counted the
// rows, these are row numbers, so that a table is split the same way however it is cut; if it
// estimated them, they are as accurate as the estimates.
std::vector<int64_t> PlacesOf(const catalog::DatasetSpec& dataset);

// The places of a shard's rows, in reading order.
class RowPlaces {
 public:
  RowPlaces() = default;
  // `first`: from PlacesOf; the pieces of a mixed shard have places of their own. `shard` must
  // outlive it.
  RowPlaces(const catalog::ShardRange& shard, int64_t first);
  int64_t Next();

 private:
  void Enter(int piece);

  const catalog::ShardRange* shard_ = nullptr;
  int piece_ = 0;
  int64_t left_ = 0;  // rows of the piece, by its estimate; further ones belong to the next piece
  int64_t next_ = 0;
};

}  // namespace sluice::elastic
