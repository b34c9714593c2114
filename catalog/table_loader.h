#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {

// Where the database refused a batch, as far as it says.
struct RefusedRow {
  std::optional<size_t> row;  // of the batch
  std::string column;         // "" when it is not one
};

// Brings rows from outside into a table of the user's own, which Sluice does not take for a result
// table. Everything happens in one transaction: others see the table, or its new rows, when Commit
// has ended, and a loader that is destroyed without it leaves nothing behind. Hears the stop of the
// statement that has begun. Not thread-safe.
class TableLoader {
 public:
  virtual ~TableLoader() = default;
  // `batch` has the columns that the loader was made with; a cell that is a text is read by the
  // database as the column's type. The first error is the last call but for the destructor.
  virtual Status Write(const RowBatch& batch, RefusedRow* refused) = 0;
  virtual Status Commit() = 0;
};

}  // namespace sluice::catalog
