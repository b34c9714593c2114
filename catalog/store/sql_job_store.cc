#include "catalog/store/sql_job_store.h"

#include <fmt/core.h>

#include <utility>

#include "catalog/store/catalog_query_internal.h"
#include "catalog/store/catalog_rights.h"
#include "catalog/store/catalog_tables.h"
#include "catalog/store/job_end.h"
#include "catalog/store/job_row_internal.h"
#include "catalog/store/role_oid.h"
#include "catalog/store/sql_job_history.h"
#include "catalog/store/sql_job_journal.h"
#include "catalog/store/sql_job_removal.h"

namespace sluice::catalog {
namespace {

// One more than the highest number ever given. SQLite's own counter, which whoever may write the
// file can set, counts only where it can be true.
constexpr std::string_view kNextJobOfSqlite =
    "(SELECT 1 + max(coalesce((SELECT max(id) FROM {jobs}), 0), coalesce((SELECT max(seq) FROM"
    " sqlite_sequence WHERE name = 'sluice_jobs' AND typeof(seq) = 'integer'"
    " AND seq < 1000000000000), 0)))";

class SqlJobStore final : public JobStore {
 public:
  SqlJobStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
              std::shared_ptr<RoleOid> role)
      : tables_(tables),
        database_(std::move(database)),
        role_(std::move(role)),
        query_(tables_, *database_),
        history_(query_),
        removal_(tables_, *database_),
        journal_(tables_, *database_) {}

  Result<int64_t> Create(const Job& job) override {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    RETURN_IF_ERROR(tables_.Create(*session));
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    std::vector<SqlParameter> parameters = JobParameters(job);
    if (has_owners()) {
      ASSIGN_OR_RETURN(const int64_t oid, role_->Find(*session));
      parameters.emplace_back(oid);
      parameters.emplace_back(role_->role());
    }
    ASSIGN_OR_RETURN(const SqlRows rows,
                     session->Query(tables_.Resolve(fmt::format(
                                        "INSERT INTO {{jobs}} (id, {}{}) VALUES ({}, $1, $2, $3,"
                                        " $4, $5, $6, $7, $8, $9, $10, $11, $12{}) RETURNING id",
                                        kJobColumns, has_owners() ? ", owner, owner_name" : "",
                                        has_owners() ? "DEFAULT" : kNextJobOfSqlite,
                                        has_owners() ? ", $13::oid, $14" : "")),
                                    parameters));
    const int64_t id = IntegerCell(rows.at(0).at(0));
    if (job.runner.pid != 0) {
      RETURN_IF_ERROR(session
                          ->Query(tables_.Resolve("INSERT INTO {job_runners} (job_id, place, pid,"
                                                  " started, seen_micros)"
                                                  " VALUES ($1, $2, $3, $4, $5)"),
                                  {id, job.runner.place, job.runner.pid, job.runner.started,
                                   job.runner.seen_micros})
                          .status());
    }
    RETURN_IF_ERROR(KeepAnswer(tables_, *session, id, job.answer));
    RETURN_IF_ERROR(TakeRequest(*session, id, job.request));
    RETURN_IF_ERROR(transaction->Commit());
    return id;
  }

  Result<std::optional<int64_t>> Requested(const std::string& request) override {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     query_.Ask("SELECT job_id FROM {job_requests} WHERE request = $1", {request}));
    return rows.empty() ? std::nullopt : std::optional(IntegerCell(rows[0][0]));
  }

  Status GiveUpRequest(int64_t job) override {
    return query_.Ask("DELETE FROM {job_requests} WHERE job_id = $1", {job}).status();
  }

  Status End(const Job& job) override {
    return Again([&] { return EndOnce(job); });
  }

  Result<std::string> Answer(int64_t job) override {
    return Again([&]() -> Result<std::string> {
      ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
      ASSIGN_OR_RETURN(const bool exist, tables_.AnswersExist(*session));
      if (!exist) {
        return std::string();
      }
      ASSIGN_OR_RETURN(
          const SqlRows rows,
          session->Query(tables_.Resolve("SELECT answer FROM {job_answers} WHERE job_id = $1"),
                         {job}));
      return rows.empty() ? std::string() : TextCell(rows[0][0]);
    });
  }

  Result<std::vector<Job>> Running() override {
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        query_.Ask(fmt::format("SELECT id, {}, place, pid, started AS began, seen_micros,"
                               " owned_by FROM (SELECT id, {}, {} AS owned_by"
                               " FROM {{jobs}} WHERE state IN ('RUNNING', 'SUSPENDED')) AS j"
                               " JOIN {{job_runners}} AS r ON r.job_id = j.id",
                               kJobColumns, JobColumns(has_owners()),
                               has_owners() ? "(SELECT r.rolname::text FROM pg_catalog.pg_roles"
                                              " AS r WHERE r.oid = owner)"
                                            : "''"),
                   {}));
    std::vector<Job> jobs;
    for (const std::vector<Value>& row : rows) {
      jobs.push_back(JobFromRow(row));
      jobs.back().runner = {TextCell(row.at(13)), IntegerCell(row.at(14)), IntegerCell(row.at(15)),
                            IntegerCell(row.at(16))};
      jobs.back().owner = IsNull(row.at(17)) ? "" : TextCell(row.at(17));
    }
    return jobs;
  }

  Result<bool> Seen(int64_t job, const JobRunner& runner) override {
    if (runner.pid == 0) {
      RETURN_IF_ERROR(query_
                          .Ask("UPDATE {job_runners} SET seen_micros = $2 WHERE job_id = $1",
                               {job, runner.seen_micros})
                          .status());
      return true;
    }
    ASSIGN_OR_RETURN(
        const SqlRows seen,
        query_.Ask("UPDATE {job_runners} SET seen_micros = $2 WHERE job_id = $1 AND place = $3"
                   " AND pid = $4 AND started = $5 RETURNING job_id",
                   {job, runner.seen_micros, runner.place, runner.pid, runner.started}));
    if (!seen.empty()) {
      return true;
    }
    ASSIGN_OR_RETURN(const SqlRows others,
                     query_.Ask("SELECT 1 FROM {job_runners} WHERE job_id = $1", {job}));
    return others.empty();  // the job has ended
  }

  Result<bool> TakeOver(int64_t job, const JobRunner& lost, const JobRunner& next) override {
    // The login of a job may not change the place.
    std::vector<SqlParameter> parameters = {job,        next.pid, next.started, next.seen_micros,
                                            lost.place, lost.pid, lost.started};
    const bool moves = next.place != lost.place;
    if (moves) {
      parameters.emplace_back(next.place);
    }
    ASSIGN_OR_RETURN(
        const SqlRows taken,
        query_.Ask(fmt::format("UPDATE {{job_runners}} SET pid = $2, started = $3, seen_micros = $4"
                               "{} WHERE job_id = $1 AND place = $5 AND pid = $6 AND started = $7"
                               " AND EXISTS (SELECT 1 FROM {{jobs}} WHERE id = $1"
                               " AND state = 'RUNNING') RETURNING job_id",
                               moves ? ", place = $8" : ""),
                   parameters));
    return !taken.empty();
  }

  Status Abandon(int64_t job, int64_t micros, JobState as, const std::string& error,
                 const std::string& answer) override {
    return Again([&]() -> Status {
      ASSIGN_OR_RETURN(
          const SqlRows rows,
          query_.Ask(fmt::format("SELECT id, {} FROM {{jobs}} WHERE id = $1", kJobColumns), {job}));
      if (rows.empty()) {
        return OkStatus();
      }
      Job ended = JobFromRow(rows[0]);
      ended.state = as;
      ended.finished_micros = micros;
      ended.error = error;
      ended.answer = answer;
      const Status done = EndOnce(ended);
      return IsJobOver(done) ? OkStatus() : done;
    });
  }

  Result<int64_t> BeginTerm(int64_t job) override { return journal_.BeginTerm(job); }
  Status AppendJournal(int64_t job, int64_t term, const std::vector<std::string>& entries,
                       bool anew, std::optional<int64_t>* last) override {
    return journal_.Append(job, term, entries, anew, last);
  }
  Result<std::vector<std::string>> Journal(int64_t job) override { return journal_.Read(job); }

  Status KeepRecord(int64_t job, const std::string& name, const std::string& content) override {
    return Again([&]() -> Status {
      ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
      RETURN_IF_ERROR(tables_.Create(*session));
      return session
          ->Query(tables_.Resolve(
                      fmt::format("INSERT INTO {{job_records}} (job_id, name, content)"
                                  " SELECT CAST($1 AS bigint), CAST($2 AS text), CAST($3 AS {})"
                                  " WHERE NOT EXISTS (SELECT 1 FROM {{jobs}} WHERE id = $1"
                                  " AND state NOT IN ('RUNNING', 'SUSPENDED'))"
                                  " ON CONFLICT (job_id, name) DO UPDATE SET content = $3",
                                  tables_.dialect() == Dialect::kPostgres ? "bytea" : "blob")),
                  {job, name, SqlBytes{content}})
          .status();
    });
  }

  Result<std::map<std::string, std::string>> Records(int64_t job,
                                                     const std::string& prefix) override {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     query_.Ask("SELECT name, content FROM {job_records} WHERE job_id = $1"
                                " AND substr(name, 1, CAST($3 AS integer)) = $2",
                                {job, prefix, static_cast<int64_t>(prefix.size())}));
    std::map<std::string, std::string> records;
    for (const std::vector<Value>& row : rows) {
      records[TextCell(row[0])] = TextCell(row[1]);
    }
    return records;
  }

  Result<Job> Find(int64_t id) override {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     query_.Ask(fmt::format("SELECT id, {} FROM {{jobs}} WHERE id = $1{}",
                                            JobColumns(has_owners()), AndMine(2)),
                                {id}, role_.get()));
    if (rows.empty()) {
      return NoJob(id);
    }
    return JobFromRow(rows[0]);
  }

  Status WriteRows(int64_t job, int64_t read, int64_t trained) override {
    return query_
        .Ask(
            "UPDATE {jobs} SET rows_read = $2, rows_trained = $3"
            " WHERE id = $1 AND state = 'RUNNING'",
            {job, read, trained})
        .status();
  }

  Result<int64_t> Count() override {
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        query_.Ask("SELECT count(*) FROM {jobs} WHERE true" + AndMine(1), {}, role_.get()));
    return rows.empty() ? 0 : IntegerCell(rows[0][0]);
  }

  Result<std::vector<Job>> List(int64_t most) override {
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        query_.Ask(fmt::format("SELECT id, {} FROM {{jobs}} WHERE true{} ORDER BY id DESC LIMIT $1",
                               JobColumns(has_owners()), AndMine(2)),
                   {most}, role_.get()));
    std::vector<Job> jobs;
    jobs.reserve(rows.size());
    for (const std::vector<Value>& row : rows) {
      jobs.push_back(JobFromRow(row));
    }
    return jobs;
  }

  Status SetSuspended(int64_t job, bool suspended) override {
    return Again([&]() -> Status {
      ASSIGN_OR_RETURN(
          const SqlRows rows,
          query_.Ask("UPDATE {jobs} SET state = $2 WHERE id = $1"
                     " AND state IN ('RUNNING', 'SUSPENDED') RETURNING id",
                     {job, std::string(JobStateName(suspended ? JobState::kSuspended
                                                              : JobState::kRunning))}));
      return rows.empty() ? Status(Code::kAborted, fmt::format("job {} has ended meanwhile", job))
                          : OkStatus();
    });
  }

  Status AddEvents(int64_t job, const std::vector<JobEvent>& events) override {
    return history_.AddEvents(job, events);
  }
  Status AddMetrics(int64_t job, const std::vector<JobMetric>& metrics) override {
    return history_.AddMetrics(job, metrics);
  }
  Status ThinMetrics(int64_t job, int64_t most) override { return history_.ThinMetrics(job, most); }
  Result<std::vector<JobEvent>> Events(int64_t job, int64_t skip) override {
    return history_.Events(job, skip);
  }
  Result<std::vector<JobMetric>> Metrics(int64_t job) override { return history_.Metrics(job); }

  Status RequestCancel(int64_t id) override {
    ASSIGN_OR_RETURN(
        const SqlRows rows,
        query_.Ask(fmt::format("UPDATE {{jobs}} SET cancel_requested = true WHERE id = $1{}"
                               " RETURNING state",
                               AndMine(2)),
                   {id}, role_.get()));
    if (rows.empty()) {
      return NoJob(id);
    }
    const std::string state = TextCell(rows[0][0]);
    if (HasEnded(StateFromName(state))) {
      return Status(Code::kFailedPrecondition,
                    fmt::format("job {} is not running any more: it is {}", id, state));
    }
    return OkStatus();
  }

  Result<bool> CancelRequested(int64_t id) override {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     query_.Ask("SELECT cancel_requested FROM {jobs} WHERE id = $1", {id}));
    if (rows.empty()) {
      return NoJob(id);
    }
    return IntegerCell(rows[0][0]) != 0;
  }

  Status Drop(int64_t id) override {
    ASSIGN_OR_RETURN(const Job job, Find(id));
    if (!HasEnded(job.state)) {
      return FailedPrecondition(fmt::format("job {} is {}", id, JobStateName(job.state)))
          .SqlState("55006")
          .Hint(fmt::format("CANCEL JOB {} ends it", id));
    }
    return removal_.Drop(id);
  }
  Result<int64_t> DropEnded(int64_t before_micros, int64_t most) override {
    return removal_.DropEnded(before_micros, most);
  }

 private:
  bool has_owners() const { return role_ != nullptr; }
  // Selects the jobs visible to the caller; the role is the parameter of that number, after the
  // others.
  std::string AndMine(int parameter) const {
    return has_owners() ? " AND " + OwnedBy(fmt::format("${}::oid", parameter)) : "";
  }

  // In the transaction that makes the job. Waits for another one that is about to do the same.
  Status TakeRequest(SqlSession& session, int64_t job, const std::string& request) {
    if (request.empty()) {
      return OkStatus();
    }
    ASSIGN_OR_RETURN(
        const SqlRows taken,
        session.Query(tables_.Resolve("INSERT INTO {job_requests} (request, job_id) VALUES ($1, $2)"
                                      " ON CONFLICT (request) DO NOTHING RETURNING job_id"),
                      {request, job}));
    return taken.empty() ? AlreadyExists(fmt::format("there is a job for {} already", request))
                         : OkStatus();
  }

  // All of it or nothing.
  Status EndOnce(const Job& job) {
    ASSIGN_OR_RETURN(const auto session, database_->TakeSession());
    ASSIGN_OR_RETURN(const bool exist, tables_.Exist(*session));
    if (!exist) {
      return NoJob(job.id);
    }
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*session, tables_.dialect(), true));
    RETURN_IF_ERROR(EndJob(tables_, *session, job));
    return transaction->Commit();
  }

  CatalogTables& tables_;
  const std::unique_ptr<SqlDatabase> database_;
  const std::shared_ptr<RoleOid> role_;  // null: a database without roles
  CatalogQuery query_;
  SqlJobHistory history_;
  SqlJobRemoval removal_;
  SqlJobJournal journal_;
};

}  // namespace

std::unique_ptr<JobStore> MakeJobStore(CatalogTables& tables, std::unique_ptr<SqlDatabase> database,
                                       std::shared_ptr<RoleOid> role) {
  return std::make_unique<SqlJobStore>(tables, std::move(database), std::move(role));
}

}  // namespace sluice::catalog
