#include "catalog/store/sql_job_removal.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "catalog/store/catalog_query_internal.h"
#include "catalog/store/catalog_tables.h"

namespace sluice::catalog {

Status SqlJobRemoval::Drop(int64_t job) {
  return Again([&] { return Delete({job}); });
}

Result<int64_t> SqlJobRemoval::DropEnded(int64_t before_micros, int64_t most) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      CatalogQuery(tables_, database_)
          .Ask("SELECT id FROM {jobs} WHERE state NOT IN ('RUNNING', 'SUSPENDED')"
               " AND finished_micros < $1 AND id NOT IN (SELECT job FROM {model_versions})"
               " ORDER BY id LIMIT $2",
               {before_micros, most}));
  std::vector<int64_t> jobs;
  jobs.reserve(rows.size());
  for (const std::vector<Value>& row : rows) {
    jobs.push_back(IntegerCell(row[0]));
  }
  if (!jobs.empty()) {
    RETURN_IF_ERROR(Delete(jobs));
  }
  return static_cast<int64_t>(jobs.size());
}

Status SqlJobRemoval::Delete(const std::vector<int64_t>& jobs) {
  ASSIGN_OR_RETURN(const auto session, database_.TakeSession());
  ASSIGN_OR_RETURN(const auto transaction,
                   SqlTransaction::Begin(*session, tables_.dialect(), true));
  const std::string numbers = fmt::format("({})", fmt::join(jobs, ", "));
  for (const std::string_view table :
       {"{job_events}", "{job_metrics}", "{job_terms}", "{job_journal}", "{job_runners}",
        "{job_answers}", "{job_records}", "{job_requests}"}) {
    const std::string sql = fmt::format("DELETE FROM {} WHERE job_id IN {}", table, numbers);
    RETURN_IF_ERROR(session->Query(tables_.Resolve(sql), {}).status());
  }
  const std::string sql = fmt::format("DELETE FROM {{jobs}} WHERE id IN {}", numbers);
  RETURN_IF_ERROR(session->Query(tables_.Resolve(sql), {}).status());
  return transaction->Commit();
}

}  // namespace sluice::catalog
