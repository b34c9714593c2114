#include <string>

#include "catalog/store/job_row_internal.h"

#include <fmt/core.h>

#include "base/utf8.h"

namespace sluice::catalog {

std::string_view JobStateName(JobState state) {
  switch (state) {
    case JobState::kRunning:
      return "RUNNING";
    case JobState::kSucceeded:
      return "SUCCEEDED";
    case JobState::kFailed:
      return "FAILED";
    case JobState::kCancelled:
      return "CANCELLED";
    case JobState::kSuspended:
      return "SUSPENDED";
  }
  return "UNKNOWN";
}

JobState StateFromName(std::string_view name) {
  for (const JobState state : {JobState::kRunning, JobState::kSucceeded, JobState::kFailed,
                               JobState::kCancelled, JobState::kSuspended}) {
    if (JobStateName(state) == name) {
      return state;
    }
  }
  return JobState::kFailed;
}

// Rows are kept for weeks, and count for nobody's limit of stored bytes.
std::string Abridged(const std::string& statement) {
  if (statement.size() <= kMaxStatementBytes) {
    return statement;
  }
  return fmt::format("{} ... ({} bytes)", CutToBytes(statement, kMaxStatementBytes),
                     statement.size());
}

std::string JobColumns(bool have_owners) {
  std::string columns(kJobColumns);
  if (have_owners) {
    constexpr std::string_view kUser = "username";
    columns.replace(columns.find(kUser), kUser.size(),
                    "coalesce(CASE WHEN username = owner_name THEN (SELECT r.rolname::text FROM"
                    " pg_catalog.pg_roles AS r WHERE r.oid = owner) END, username) AS username");
  }
  return columns;
}

std::vector<SqlParameter> JobParameters(const Job& job) {
  return {std::string(JobStateName(job.state)),
          job.kind,
          Abridged(job.statement),
          job.model,
          job.user,
          job.started_micros,
          job.finished_micros,
          job.rows_read,
          job.rows_trained,
          job.rows_retried,
          job.rows_skipped,
          job.error};
}

Job JobFromRow(const std::vector<Value>& row) {
  Job job;
  job.id = IntegerCell(row.at(0));
  job.state = StateFromName(TextCell(row.at(1)));
  job.kind = TextCell(row.at(2));
  job.statement = TextCell(row.at(3));
  job.model = TextCell(row.at(4));
  job.user = TextCell(row.at(5));
  job.started_micros = IntegerCell(row.at(6));
  job.finished_micros = IntegerCell(row.at(7));
  job.rows_read = IntegerCell(row.at(8));
  job.rows_trained = IntegerCell(row.at(9));
  job.rows_retried = IntegerCell(row.at(10));
  job.rows_skipped = IntegerCell(row.at(11));
  job.error = TextCell(row.at(12));
  return job;
}

}  // namespace sluice::catalog
