#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "catalog/job_store.h"
#include "catalog/sql/sql_session.h"

// A job as a row of the table of jobs.
namespace sluice::catalog {

// The columns after the id.
inline constexpr std::string_view kJobColumns =
    "state, kind, statement, model, username, started_micros, finished_micros, rows_read,"
    " rows_trained, rows_retried, rows_skipped, error";

// The columns for reading if jobs have owners: a user who is a role has the role's current name.
std::string JobColumns(bool have_owners);

// In the order of kJobColumns.
std::vector<SqlParameter> JobParameters(const Job& job);
// `row`: the id and kJobColumns.
Job JobFromRow(const std::vector<Value>& row);
JobState StateFromName(std::string_view name);

}  // namespace sluice::catalog
