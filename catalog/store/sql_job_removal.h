#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {

class CatalogTables;
class SqlDatabase;

// Deletes jobs that have ended, with all that is stored of them, over either database, as JobStore
// describes it. Thread-safe.
class SqlJobRemoval {
 public:
  // Both must outlive this object.
  SqlJobRemoval(CatalogTables& tables, SqlDatabase& database)
      : tables_(tables), database_(database) {}

  // One that the caller has found, and that has ended.
  Status Drop(int64_t job);
  Result<int64_t> DropEnded(int64_t before_micros, int64_t most);

 private:
  Status Delete(const std::vector<int64_t>& jobs);

  CatalogTables& tables_;
  SqlDatabase& database_;
};

}  // namespace sluice::catalog
