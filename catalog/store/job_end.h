#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::catalog {

class CatalogTables;
class SqlSession;

// Writes in the caller's transaction how a job ends: its state, rows, error and answer, and deletes
// what only a running job needs. On an error (JobStore::End) the transaction has to be rolled back.
Status EndJob(CatalogTables& tables, SqlSession& session, const Job& job);

// Writes a job's answer; "": none.
Status KeepAnswer(CatalogTables& tables, SqlSession& session, int64_t job,
                  const std::string& answer);

// The error for a number that no job has.
Status NoJob(int64_t job);

}  // namespace sluice::catalog
