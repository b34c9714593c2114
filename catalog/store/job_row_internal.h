#pragma once

#include <string_view>
#include <vector>

#include "catalog/job_store.h"
#include "catalog/sql/sql_session.h"

// A job as a row of the table of jobs.
namespace sluice::catalog {

// Behind the id. Of the row there is more that only its writers know: the owner.
inline constexpr std::string_view kJobColumns =
    "state, kind, statement, model, username, started_micros, finished_micros, rows_read,"
    " rows_trained, rows_retried, rows_skipped, error";

// In their order.
std::vector<SqlParameter> JobParameters(const Job& job);
// `row`: the id and kJobColumns.
Job JobFromRow(const std::vector<Value>& row);
JobState StateFromName(std::string_view name);

}  // namespace sluice::catalog
