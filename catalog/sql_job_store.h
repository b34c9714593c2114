#pragma once

#include <memory>

#include "catalog/job_store.h"

namespace sluice::catalog {

class CatalogTables;
class SqlDatabase;

// The job store over either database. `for_statement`: the same database, whose sessions hear the
// statement's stop: for jobs that are only about to begin, and for reading. What has become of a
// job is written down also when its statement was cancelled. Both outlive the store.
std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables, SqlDatabase& for_statement);

}  // namespace sluice::catalog
