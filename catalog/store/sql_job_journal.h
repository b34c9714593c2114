#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::catalog {

class CatalogTables;
class SqlDatabase;
class SqlSession;

// The journals of jobs' masters and their terms over either database, as JobStore describes them.
class SqlJobJournal {
 public:
  SqlJobJournal(CatalogTables& tables, SqlDatabase& database)
      : tables_(tables), database_(database) {}

  Result<int64_t> BeginTerm(int64_t job);
  Status Append(int64_t job, int64_t term, const std::vector<std::string>& entries, bool anew,
                std::optional<int64_t>* last);
  Result<std::vector<std::string>> Read(int64_t job);
  Status Delete(SqlSession& session, int64_t job);

 private:
  CatalogTables& tables_;
  SqlDatabase& database_;
};

}  // namespace sluice::catalog
