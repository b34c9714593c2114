#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class Split;
}

namespace sluice::elastic {

// Decides for each row of a shard whether it is a validation row: by what is in the plan and in the
// row alone, so that everyone who reads the shard splits it the same way. Immutable, thread-safe.
class SplitRule {
 public:
  static Result<SplitRule> Make(const plan::Split& split);

  // The column that the rule needs to see; empty: none.
  const std::string& column() const { return column_; }
  bool splits() const { return kind_ != Kind::kNone; }
  // `row_in_shard`: position in the shard's fixed order. `column`: the rule's own, or null.
  bool IsValidation(int64_t shard, int64_t row_in_shard, const RowBatch::Column* column,
                    size_t row) const;

 private:
  enum class Kind { kNone, kRandom, kHash, kTime, kColumn };
  Kind kind_ = Kind::kNone;
  std::string column_;
  uint64_t seed_ = 0;
  uint64_t below_ = 0;  // hashes below it are validation
  double threshold_ = 0;
};

}  // namespace sluice::elastic
