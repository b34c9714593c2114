#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <stop_token>
#include <utility>

#include "base/mutex.h"
#include "catalog/postgres/postgres_copy_internal.h"
#include "catalog/postgres/postgres_copy_sender_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_result_table_internal.h"
#include "catalog/postgres/postgres_table_definition_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/store/advisory_lock.h"

namespace sluice::catalog {
namespace {

// How long to wait for other users of the table.
constexpr std::string_view kPatience = "SET LOCAL lock_timeout = '30s'";
// Every statement sees what others have committed by then, whatever the role's default isolation
// is.
constexpr std::string_view kBegin = "BEGIN ISOLATION LEVEL READ COMMITTED";

std::string CopyStatement(const TableName& table, const Schema& schema) {
  return fmt::format("COPY {} ({}) FROM STDIN", table.Quoted(), ColumnList(schema));
}

// One text per row of the answer.
Result<std::vector<std::string>> Texts(PostgresConnection& connection, const std::string& sql,
                                       const std::vector<SqlParameter>& parameters) {
  ASSIGN_OR_RETURN(const PostgresResult rows, AskServer(connection, sql, parameters));
  std::vector<std::string> texts;
  texts.reserve(static_cast<size_t>(PQntuples(rows.get())));
  for (int i = 0; i < PQntuples(rows.get()); ++i) {
    texts.emplace_back(PostgresText(rows.get(), i, 0));
  }
  return texts;
}

// Statements that give the table `made` the same rights as the one it replaces, and no others:
// default privileges may have added some.
Result<std::vector<std::string>> RightsOf(PostgresConnection& connection, const TableName& replaced,
                                          const TableName& made) {
  constexpr std::string_view kRights =
      "WITH role AS (SELECT 0::oid AS oid, 'PUBLIC' AS name UNION ALL"
      "  SELECT oid, quote_ident(rolname) FROM pg_catalog.pg_roles),"
      " old AS (SELECT * FROM pg_catalog.pg_class WHERE oid = $1::regclass),"
      " new AS (SELECT * FROM pg_catalog.pg_class WHERE oid = $2::regclass)"
      " SELECT format('REVOKE ALL ON TABLE %s FROM %s', $2::text, role.name)"
      "  FROM new, aclexplode(new.relacl) a JOIN role ON role.oid = a.grantee"
      "  WHERE a.grantee <> new.relowner"
      " UNION ALL SELECT format('GRANT %s ON TABLE %s TO %s%s', a.privilege_type, $2::text,"
      "  role.name, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)"
      "  FROM old, aclexplode(old.relacl) a JOIN role ON role.oid = a.grantee"
      "  WHERE a.grantee <> old.relowner"
      " UNION ALL SELECT format('GRANT %s (%I) ON TABLE %s TO %s%s', a.privilege_type, c.attname,"
      "  $2::text, role.name, CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)"
      "  FROM old JOIN pg_catalog.pg_attribute c ON c.attrelid = old.oid,"
      "  new JOIN pg_catalog.pg_attribute n ON n.attrelid = new.oid,"
      "  aclexplode(c.attacl) a JOIN role ON role.oid = a.grantee"
      "  WHERE n.attname = c.attname AND NOT n.attisdropped AND n.attnum > 0"
      " UNION ALL SELECT format('ALTER TABLE %s OWNER TO %s', $2::text, role.name)"
      "  FROM old JOIN role ON role.oid = old.relowner, new WHERE new.relowner <> old.relowner";
  return Texts(connection, std::string(kRights), {replaced.Quoted(), made.Quoted()});
}

// The action, and the table where the rows are collected until then.
struct Beginning {
  PostgresTarget target;
  ResultAction action = ResultAction::kMake;
  std::optional<TableName> staging;
  std::string columns;  // of the staging table
};

Status MakeStaging(PostgresConnection& connection, const std::string& in_schema,
                   const Schema& schema, Beginning* beginning) {
  beginning->staging = {in_schema, "sluice_new_" + RandomSuffix()};
  RETURN_IF_ERROR(MakePostgresTable(connection, beginning->staging->Quoted(), schema));
  ASSIGN_OR_RETURN(beginning->columns, PostgresColumns(connection, *beginning->staging));
  return OkStatus();
}

// Decides the action, inside a transaction that it begins. The staging table is in the schema of
// the result if it will become the result itself, and temporary otherwise.
Result<Beginning> Begin(PostgresConnection& connection, const ResultTable& wanted,
                        const Schema* schema) {
  RETURN_IF_ERROR(connection.Begin(fmt::format("{}; {}", kBegin, kPinnedText)));
  Beginning beginning;
  ASSIGN_OR_RETURN(beginning.target, FindPostgresTarget(connection, wanted.name));
  const std::optional<FoundTable>& found = beginning.target.found;
  // First the checks that do not depend on the columns.
  ASSIGN_OR_RETURN(beginning.action, DecideResultAction(wanted, found, std::nullopt));
  for (const ColumnInfo& column : schema == nullptr ? Schema().columns : schema->columns) {
    RETURN_IF_ERROR(CheckPostgresName(column.name));
  }
  if (schema != nullptr && found) {
    RETURN_IF_ERROR(MakeStaging(connection, "pg_temp", *schema, &beginning));
    ASSIGN_OR_RETURN(beginning.action, DecideResultAction(wanted, found, beginning.columns));
  }
  // Releases the locks of the checks: others may use the table until Commit.
  RETURN_IF_ERROR(connection.Run("SAVEPOINT checks"));
  RETURN_IF_ERROR(CheckPostgresAction(connection, beginning.target, beginning.action, schema,
                                      beginning.staging));
  RETURN_IF_ERROR(connection.Run("ROLLBACK TO SAVEPOINT checks; RELEASE SAVEPOINT checks"));
  return beginning;
}

// Everything happens in one transaction on one connection: a process that dies before COMMIT leaves
// nothing behind, and the result table stays unchanged. Replaced rows are deleted, not truncated,
// so that readers with an older snapshot still see them.
class PostgresTableWriter final : public TableWriter {
 public:
  PostgresTableWriter(PostgresPool::Lease connection, ResultTable wanted, Beginning beginning,
                      const Schema& schema)
      : wanted_(std::move(wanted)),
        schema_(schema),
        connection_(std::move(connection)),
        copy_(*connection_, CopyStatement(*beginning.staging, schema)),
        beginning_(std::move(beginning)) {
    wanted_.name = beginning_.target.name;
    sender_.emplace([this](const std::string& text) { return Send(text); });
  }

  ~PostgresTableWriter() override {
    sender_.reset();
    MutexLock lock(mutex_);
    if (connection_) {
      copy_.GiveUp();
      connection_->Rollback();
    }
  }

  using RowWriter::Write;
  Status Write(const RowBatch& batch) override {
    if (batch.columns.size() != schema_.columns.size()) {
      return Internal(fmt::format("a batch for table {} has {} columns; expected {}",
                                  wanted_.name.name, batch.columns.size(), schema_.columns.size()));
    }
    return sender_->Put(CopyText(batch));
  }
  Prepared Prepare(RowBatch* batch) const override { return CopyText(*batch); }
  Status Write(Prepared rows) override {
    return sender_->Put(std::get<std::string>(std::move(rows)));
  }

  std::optional<int64_t> rows_arrived() override {
    MutexLock lock(mutex_);
    return arrived_;
  }

  Status Commit(std::stop_token stop) override {
    Status sent = sender_->Finish();
    MutexLock lock(mutex_);
    if (sent.ok() && failure_.ok()) {
      sent = copy_.Finish().Because("cannot write " + wanted_.name.Text());
    }
    if (!sent.ok() || !failure_.ok()) {
      return sent.ok() ? failure_ : sent;
    }
    if (stop.stop_requested()) {
      return failure_ = Cancelled("cancelled before the result was written");
    }
    if (stop.stop_possible()) {  // otherwise the source's own is heard
      connection_->HearStop(stop);
    }
    failure_ = Publish().Because("cannot write " + wanted_.name.Text());
    connection_->IgnoreStop();
    connection_->Rollback();  // does nothing after COMMIT
    if (stop.stop_requested()) {
      connection_.Discard();  // the cancel request may arrive when the connection has its next user
    }
    return failure_;
  }

 private:
  Status Send(const std::string& text) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return copy_.Send(text).Because("cannot write " + wanted_.name.Text());
  }

  Status Publish() REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    RETURN_IF_ERROR(connection.Run(std::string(kPatience)));
    RETURN_IF_ERROR(AwaitTurn());
    ASSIGN_OR_RETURN(const PostgresTarget target, Lock());
    ASSIGN_OR_RETURN(const ResultAction action,
                     DecideResultAction(wanted_, target.found, beginning_.columns));
    RETURN_IF_ERROR(CheckPostgresAction(connection, target, action, &schema_, beginning_.staging));
    if (action == ResultAction::kMake || action == ResultAction::kReplace) {
      RETURN_IF_ERROR(Make(target));
    } else {
      RETURN_IF_ERROR(Fill(target.name, action));
    }
    if (action != ResultAction::kAppend || target.found->IsOurs()) {
      ASSIGN_OR_RETURN(const PostgresTarget written, FindPostgresTarget(connection, wanted_.name));
      if (action == ResultAction::kRefill) {
        RETURN_IF_ERROR(CheckWritten(*target.found, written));
      }
      RETURN_IF_ERROR(connection.Run(std::string(kAsLogin)));
      RETURN_IF_ERROR(RecordResultTable(connection, Dialect::kPostgres, wanted_, *written.found));
    }
    return connection.Commit();
  }

  // Since the table was checked, the schema's owner can have given its name to another schema, and
  // taken it back: the rows then went to a table of that name there, whose lock is still held.
  Status CheckWritten(const FoundTable& checked, const PostgresTarget& written) REQUIRES(mutex_) {
    ASSIGN_OR_RETURN(
        const PostgresResult strangers,
        AskServer(*connection_,
                  "SELECT EXISTS (SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_class c"
                  " ON c.oid = l.relation JOIN pg_catalog.pg_roles r ON r.oid = c.relowner"
                  " WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation'"
                  " AND l.database = (SELECT oid FROM pg_catalog.pg_database"
                  "  WHERE datname = current_database())"
                  " AND l.mode = 'RowExclusiveLock' AND c.relname = $1 AND c.oid <> $2::oid"
                  " AND NOT r.rolsuper AND NOT pg_has_role(c.relowner, 'USAGE'))",
                  {checked.name.name, checked.identity}));
    const bool same = written.found && written.found->identity == checked.identity;
    return same && PostgresText(strangers.get(), 0, 0) != "t" ? OkStatus() : ChangedMeanwhile();
  }

  static Status ChangedMeanwhile() {
    return Status(Code::kAborted, "another session changed the table at the same moment")
        .SqlState("40001")
        .Hint("run the statement again");
  }

  // Two statements that write the same table do it one after the other, even if it does not exist
  // yet. Without the lock, the locks on the table itself decide.
  Status AwaitTurn() REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    return AwaitAdvisoryLock([this, &connection]() -> Result<bool> {
      ASSIGN_OR_RETURN(const PostgresResult taken,
                       connection.Ask("SELECT pg_catalog.pg_try_advisory_xact_lock("
                                      "pg_catalog.hashtextextended($1, 736811225))",
                                      {wanted_.name.Quoted()}));
      return PostgresText(taken.get(), 0, 0) == "t";
    });
  }

  // The object of that name, locked until the end of the transaction.
  Result<PostgresTarget> Lock() REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    ASSIGN_OR_RETURN(PostgresTarget seen, FindPostgresTarget(connection, wanted_.name));
    if (!seen.found) {
      return seen;
    }
    ASSIGN_OR_RETURN(const ResultAction action,
                     DecideResultAction(wanted_, seen.found, beginning_.columns));
    // Readers continue while rows are replaced; a table that is dropped has none.
    const std::string_view mode = action == ResultAction::kAppend    ? "ROW EXCLUSIVE"
                                  : action == ResultAction::kReplace ? "ACCESS EXCLUSIVE"
                                                                     : "SHARE ROW EXCLUSIVE";
    RETURN_IF_ERROR(connection.Run(fmt::format("LOCK TABLE {}{} IN {} MODE",
                                               action == ResultAction::kAppend ? "" : "ONLY ",
                                               seen.name.Quoted(), mode)));
    ASSIGN_OR_RETURN(PostgresTarget locked, FindPostgresTarget(connection, wanted_.name));
    if (!locked.found || locked.found->identity != seen.found->identity ||
        locked.found->columns != seen.found->columns) {
      return ChangedMeanwhile();
    }
    return locked;
  }

  // Turns the staging table into the result.
  Status Make(const PostgresTarget& target) REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    if (beginning_.staging->schema != target.name.schema) {  // the table was dropped since we began
      const TableName rows = *beginning_.staging;
      RETURN_IF_ERROR(MakeStaging(connection, target.name.schema, schema_, &beginning_));
      RETURN_IF_ERROR(
          connection.Run(InsertNewRows(*beginning_.staging, rows, schema_, ResultAction::kMake)));
      RETURN_IF_ERROR(connection.Run("DROP TABLE " + rows.Quoted()));
    }
    RETURN_IF_ERROR(
        MarkPostgresTable(connection, *beginning_.staging, target.name, beginning_.columns));
    if (target.found) {
      ASSIGN_OR_RETURN(const std::vector<std::string> rights,
                       RightsOf(connection, target.name, *beginning_.staging));
      RETURN_IF_ERROR(connection.Run("DROP TABLE " + target.name.Quoted()));
      for (const std::string& right : rights) {
        RETURN_IF_ERROR(connection.Run(right));
      }
    }
    return connection.Run(fmt::format("ALTER TABLE {} RENAME TO {}", beginning_.staging->Quoted(),
                                      QuoteName(target.name.name)));
  }

  // Moves the rows of the staging table into a table that stays.
  Status Fill(const TableName& table, ResultAction action) REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    if (action == ResultAction::kRefill) {
      // A deferrable foreign key is satisfied again at COMMIT.
      RETURN_IF_ERROR(connection.Run("SET CONSTRAINTS ALL DEFERRED"));
      RETURN_IF_ERROR(connection.Run(DeleteOldRows(table)));
      ASSIGN_OR_RETURN(const PostgresResult left, connection.Ask(FindOldRows(table)));
      if (PostgresText(left.get(), 0, 0) == "t") {
        return FailedPrecondition("a trigger or a rule of the table keeps rows from being deleted")
            .Hint("drop it, or name another table");
      }
    }
    const TableName& staging = *beginning_.staging;
    ASSIGN_OR_RETURN(const PostgresResult inserted,
                     connection.Ask(InsertNewRows(table, staging, schema_, action)));
    arrived_ = std::strtoll(PQcmdTuples(inserted.get()), nullptr, 10);
    // Deferred triggers of others run with the rights of their owners, and before the rows are
    // counted.
    RETURN_IF_ERROR(connection.Run("SET CONSTRAINTS ALL IMMEDIATE"));
    if (action == ResultAction::kRefill) {
      ASSIGN_OR_RETURN(const PostgresResult written,
                       connection.Ask("SELECT pg_catalog.count(*) FROM " + staging.Quoted()));
      RETURN_IF_ERROR(
          CheckPostgresArrived(connection, table, PostgresInteger(written.get(), 0, 0)));
    }
    return connection.Run("DROP TABLE " + staging.Quoted());
  }

  ResultTable wanted_;
  const Schema schema_;
  Mutex mutex_;
  PostgresPool::Lease connection_ GUARDED_BY(mutex_);
  CopyIn copy_ GUARDED_BY(mutex_);  // on connection_
  Beginning beginning_ GUARDED_BY(mutex_);
  std::optional<int64_t> arrived_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);  // of Commit; the transaction is lost with it
  std::optional<CopySender> sender_;   // uses the others
};

}  // namespace

Result<ResultPlan> PlanPostgresResult(PostgresDatabase& database, const ResultTable& table,
                                      const Schema* columns) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForWriting());
  const Result<Beginning> beginning = Begin(*connection, table, columns);
  connection->Rollback();
  if (!beginning.ok()) {
    return beginning.status();
  }
  return ResultPlan{beginning->target.name, beginning->action};
}

Result<std::unique_ptr<TableWriter>> OpenPostgresWriter(PostgresDatabase& database,
                                                        const ResultTable& table,
                                                        const Schema& schema) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForWriting());
  Result<Beginning> begun = Begin(*connection, table, &schema);
  if (!begun.ok()) {
    connection->Rollback();
    return begun.status();
  }
  Beginning beginning = std::move(begun).value();
  Status staged;
  if (beginning.action == ResultAction::kMake || beginning.action == ResultAction::kReplace) {
    if (beginning.staging) {
      staged = connection->Run("DROP TABLE " + beginning.staging->Quoted());
    }
    staged.Add(MakeStaging(*connection, beginning.target.name.schema, schema, &beginning));
  }
  if (!staged.ok()) {
    connection->Rollback();
    return std::move(staged).Because("cannot write " + beginning.target.name.Text());
  }
  return std::unique_ptr<TableWriter>(
      new PostgresTableWriter(std::move(connection), table, std::move(beginning), schema));
}

Status AppendPostgresRows(PostgresDatabase& database, const TableName& table, const Schema& schema,
                          const RowBatch& batch) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.pool().Take());
  ASSIGN_OR_RETURN(const PostgresTarget target, FindPostgresTarget(*connection, table));
  if (!target.found) {
    Status created = MakePostgresTable(*connection, target.name.Quoted(), schema);
    if (!created.ok() && created.sqlstate() != "42P07") {
      return created;
    }
  }
  return CopyRows(*connection, CopyStatement(target.name, schema), CopyText(batch));
}

}  // namespace sluice::catalog
