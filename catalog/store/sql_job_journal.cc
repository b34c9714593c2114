#include "catalog/store/sql_job_journal.h"

#include <fmt/core.h>

#include "catalog/job_store.h"
#include "catalog/sql/sql_session.h"
#include "catalog/store/catalog_query_internal.h"
#include "catalog/store/catalog_tables.h"

namespace sluice::catalog {
namespace {

constexpr char kTermIsOver[] = "SL002";

}  // namespace

bool IsTermOver(const Status& status) {
  return status.sqlstate() == kTermIsOver;
}

Result<int64_t> SqlJobJournal::BeginTerm(int64_t job) {
  return Again([&]() -> Result<int64_t> {
    ASSIGN_OR_RETURN(const auto session, database_.TakeSession());
    RETURN_IF_ERROR(tables_.Create(*session));
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        session->Query(tables_.Resolve("INSERT INTO {job_terms} AS t (job_id, term) VALUES ($1, 1)"
                                       " ON CONFLICT (job_id) DO UPDATE SET term = t.term + 1"
                                       " RETURNING term"),
                       {job}));
    return IntegerCell(rows.at(0).at(0));
  });
}

Status SqlJobJournal::Append(int64_t job, int64_t term, const std::vector<std::string>& entries,
                             bool anew, std::optional<int64_t>* last) {
  ASSIGN_OR_RETURN(const auto session, database_.TakeSession());
  ASSIGN_OR_RETURN(const auto transaction,
                   SqlTransaction::Begin(*session, tables_.dialect(), true));
  // Locks the row: a term that begins meanwhile waits, and then reads what is written here.
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      session->Query(tables_.Resolve("UPDATE {job_terms} SET term = term WHERE job_id = $1"
                                     " AND term = $2 RETURNING EXISTS (SELECT 1 FROM {jobs}"
                                     " WHERE id = $1 AND state NOT IN ('RUNNING', 'SUSPENDED'))"),
                     {job, term}));
  if (rows.empty()) {
    return Status(Code::kAborted,
                  fmt::format("job {} has another master by now: term {} is over", job, term))
        .SqlState(kTermIsOver);
  }
  if (IntegerCell(rows[0][0]) != 0) {
    return OkStatus();  // nobody continues it
  }
  ASSIGN_OR_RETURN(
      const SqlRows end,
      session->Query(tables_.Resolve("SELECT coalesce(max(position), 0) FROM {job_journal}"
                                     " WHERE job_id = $1"),
                     {job}));
  int64_t position = IntegerCell(end.at(0).at(0));
  if (position > last->value_or(position)) {  // no other process appends in this term
    *last = position;
    return OkStatus();
  }
  *last = position;
  if (anew) {
    RETURN_IF_ERROR(Delete(*session, job));
  }
  for (const std::string& entry : entries) {
    ASSIGN_OR_RETURN(const SqlRows inserted,
                     session->Query(tables_.Resolve("INSERT INTO {job_journal} (job_id, entry)"
                                                    " VALUES ($1, $2) RETURNING position"),
                                    {job, SqlBytes{entry}}));
    position = IntegerCell(inserted.at(0).at(0));
  }
  RETURN_IF_ERROR(transaction->Commit());
  *last = position;
  return OkStatus();
}

Result<std::vector<std::string>> SqlJobJournal::Read(int64_t job) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      CatalogQuery(tables_, database_)
          .Ask("SELECT entry FROM {job_journal} WHERE job_id = $1 ORDER BY position", {job}));
  std::vector<std::string> entries;
  entries.reserve(rows.size());
  for (const std::vector<Value>& row : rows) {
    entries.push_back(TextCell(row[0]));
  }
  return entries;
}

Status SqlJobJournal::Delete(SqlSession& session, int64_t job) {
  return session.Query(tables_.Resolve("DELETE FROM {job_journal} WHERE job_id = $1"), {job})
      .status();
}

}  // namespace sluice::catalog
