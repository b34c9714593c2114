#include "catalog/store/job_end.h"

#include <fmt/core.h>

#include <string>
#include <utility>

#include "catalog/sql/sql_session.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/job_row_internal.h"

namespace sluice::catalog {
namespace {

constexpr char kJobIsOver[] = "SL003";

Status Over(std::string message) {
  return Status(Code::kAborted, std::move(message)).SqlState(kJobIsOver);
}

// Deletes the row that names the job's process, as whoever ends a job does first. A process that
// takes the job over meanwhile waits for the end of this transaction, and then finds that it has
// ended.
Status LeaveRunner(CatalogTables& tables, SqlSession& session, const Job& job) {
  if (job.runner.pid == 0) {
    return session.Query(tables.Resolve("DELETE FROM {job_runners} WHERE job_id = $1"), {job.id})
        .status();
  }
  ASSIGN_OR_RETURN(
      const SqlRows left,
      session.Query(tables.Resolve("DELETE FROM {job_runners} WHERE job_id = $1 AND place = $2"
                                   " AND pid = $3 AND started = $4 RETURNING job_id"),
                    {job.id, job.runner.place, job.runner.pid, job.runner.started}));
  if (!left.empty()) {
    return OkStatus();
  }
  ASSIGN_OR_RETURN(
      const SqlRows others,
      session.Query(tables.Resolve("SELECT 1 FROM {job_runners} WHERE job_id = $1"), {job.id}));
  return others.empty() ? OkStatus()
                        : Over(fmt::format("another process continues job {}", job.id));
}

// Deletes what only the process of a running job, or its successor, needs.
Status ForgetRun(CatalogTables& tables, SqlSession& session, int64_t job) {
  for (const char* const sql : {"DELETE FROM {job_records} WHERE job_id = $1",
                                "DELETE FROM {job_journal} WHERE job_id = $1"}) {
    RETURN_IF_ERROR(session.Query(tables.Resolve(sql), {job}).status());
  }
  return OkStatus();
}

}  // namespace

bool IsJobOver(const Status& status) {
  return status.sqlstate() == kJobIsOver;
}

Status JobIsOver(int64_t job, JobState state) {
  return Over(fmt::format("job {} has ended already: it is {}", job, JobStateName(state)));
}

Status NoJob(int64_t job) {
  return NotFound(fmt::format("there is no job {}", job)).Hint("SHOW JOBS lists them");
}

Status EndJob(CatalogTables& tables, SqlSession& session, const Job& job) {
  RETURN_IF_ERROR(LeaveRunner(tables, session, job));
  ASSIGN_OR_RETURN(
      const SqlRows ended,
      session.Query(
          tables.Resolve("UPDATE {jobs} SET state = $2, finished_micros = $3, rows_read = $4,"
                         " rows_trained = $5, rows_retried = $6, rows_skipped = $7, error = $8"
                         " WHERE id = $1 AND state IN ('RUNNING', 'SUSPENDED') RETURNING id"),
          {job.id, std::string(JobStateName(job.state)), job.finished_micros, job.rows_read,
           job.rows_trained, job.rows_retried, job.rows_skipped, job.error}));
  if (ended.empty()) {
    ASSIGN_OR_RETURN(
        const SqlRows found,
        session.Query(tables.Resolve("SELECT state FROM {jobs} WHERE id = $1"), {job.id}));
    return found.empty() ? NoJob(job.id) : JobIsOver(job.id, StateFromName(TextCell(found[0][0])));
  }
  RETURN_IF_ERROR(KeepAnswer(tables, session, job.id, job.answer));
  return ForgetRun(tables, session, job.id);
}

Status KeepAnswer(CatalogTables& tables, SqlSession& session, int64_t job,
                  const std::string& answer) {
  return answer.empty()
             ? OkStatus()
             : session
                   .Query(tables.Resolve("INSERT INTO {job_answers} (job_id, answer)"
                                         " VALUES ($1, $2)"
                                         " ON CONFLICT (job_id) DO UPDATE SET answer = $2"),
                          {job, SqlBytes{answer}})
                   .status();
}

}  // namespace sluice::catalog
