#pragma once

#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::catalog {

// Where the database refused a batch, as far as it reports it.
struct RefusedRow {
  std::optional<size_t> row;  // of the batch
  std::string column;         // "" if the error concerns no column
};

// Loads rows from outside into a table of the user, which is not a result table of Sluice.
// Everything happens in one transaction: others see the table, or its new rows, after Commit, and a
// loader destroyed without it leaves nothing behind. Obeys the current statement's stop. Not
// thread-safe.
class TableLoader {
 public:
  virtual ~TableLoader() = default;
  // `batch` has the columns with which the loader was made; the database parses text cells as the
  // column's type. After an error only the destructor may be called.
  virtual Status Write(const RowBatch& batch, RefusedRow* refused) = 0;
  virtual Status Commit() = 0;
};

}  // namespace sluice::catalog
