#include <fmt/core.h>

#include <optional>
#include <stop_token>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_insert_internal.h"
#include "catalog/sqlite/sqlite_result_table_internal.h"

namespace sluice::catalog {
namespace {

// A cancelled statement is answered within a second. A table that could not be dropped by then is
// dropped later (DropAbandonedStaging).
constexpr std::chrono::milliseconds kDropPatience{300};

// All rows of the batch in one transaction.
Status InsertBatch(SqliteConnection& connection, const std::string& insertion,
                   const RowBatch& batch) {
  ASSIGN_OR_RETURN(const auto transaction,
                   SqlTransaction::Begin(connection, Dialect::kSqlite, true));
  {
    ASSIGN_OR_RETURN(const SqliteStatement statement, connection.Prepare(insertion));
    for (size_t row = 0; row < batch.rows; ++row) {
      for (size_t i = 0; i < batch.columns.size(); ++i) {
        if (BindCell(statement.get(), static_cast<int>(i) + 1, batch.columns[i], row) !=
            SQLITE_OK) {
          return connection.LastError(insertion);
        }
      }
      if (sqlite3_step(statement.get()) != SQLITE_DONE) {
        return connection.LastError(insertion);
      }
      sqlite3_reset(statement.get());
    }
  }
  return transaction->Commit();
}

// A table gets a name that views of the database may already use: without this, SQLite checks all
// views before it renames, and fails if one cannot be read.
class PlainRename {
 public:
  explicit PlainRename(SqliteConnection& connection) : connection_(connection) {
    sqlite3_db_config(connection_.handle(), SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 1, nullptr);
  }
  ~PlainRename() {
    sqlite3_db_config(connection_.handle(), SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 0, nullptr);
  }
  PlainRename(const PlainRename&) = delete;
  PlainRename& operator=(const PlainRename&) = delete;

 private:
  SqliteConnection& connection_;
};

// Rows arrive in a staging table, one transaction for each batch, so that the file's write lock is
// free in between: progress and metrics of the same job are written to the same file.
class SqliteTableWriter final : public TableWriter {
 public:
  SqliteTableWriter(SqliteDatabase& database, SqlitePool::Lease connection, ResultTable wanted,
                    const Schema& schema)
      : database_(database),
        wanted_(std::move(wanted)),
        schema_(schema),
        insertion_(Insertion(staging_.name().Quoted(), schema)),
        connection_(std::move(connection)) {}

  ~SqliteTableWriter() override {
    MutexLock lock(mutex_);
    if (committed_) {
      return;
    }
    connection_->EndTransaction();  // or else a stopped statement could not drop anything
    connection_->WaitForLocks(kDropPatience);
    const Status dropped = connection_->Run("DROP TABLE IF EXISTS " + staging_.name().Quoted());
    if (!dropped.ok()) {
      log::Warn("cannot drop staging table={} error=\"{}\"", staging_.name().name,
                dropped.message());
    }
  }

  // Creates the staging table.
  Status Begin() {
    MutexLock lock(mutex_);
    RETURN_IF_ERROR(connection_->Run(staging_.Definition(schema_))
                        .Because("cannot write " + wanted_.name.Text()));
    ASSIGN_OR_RETURN(staged_columns_, SqliteColumns(*connection_, staging_.name()));
    return OkStatus();
  }

  using RowWriter::Write;
  Status Write(const RowBatch& batch) override {
    if (batch.columns.size() != schema_.columns.size()) {
      return Internal(fmt::format("a batch for table {} has {} columns; expected {}",
                                  wanted_.name.name, batch.columns.size(), schema_.columns.size()));
    }
    MutexLock lock(mutex_);
    return InsertBatch(*connection_, insertion_, batch)
        .Because("cannot write " + wanted_.name.Text());
  }

  std::optional<int64_t> rows_arrived() override {
    MutexLock lock(mutex_);
    return arrived_;
  }

  Status Commit(std::stop_token stop) override {
    MutexLock lock(mutex_);
    if (stop.stop_requested()) {
      return Cancelled("cancelled before the result was written");
    }
    // Before and after: data written to a file that is no longer at the path must not count as
    // written.
    RETURN_IF_ERROR(database_.OpenAnew(database_.stop()).status());
    Status published;
    {
      sqlite3* handle = connection_->handle();
      const std::stop_callback interrupt(stop, [handle] { sqlite3_interrupt(handle); });
      published = Publish();
    }
    committed_ = published.ok();
    if (committed_) {
      published = database_.OpenAnew(database_.stop()).status();
    }
    return Status(published).Because("cannot write " + wanted_.name.Text());
  }

 private:
  Status Publish() REQUIRES(mutex_) {
    SqliteConnection& connection = *connection_;
    const PlainRename plain_rename(connection);
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(connection, Dialect::kSqlite, true));
    ASSIGN_OR_RETURN(const SqliteTarget target, FindSqliteTarget(connection, wanted_.name));
    ASSIGN_OR_RETURN(const ResultAction action,
                     DecideResultAction(wanted_, target.found, staged_columns_));
    RETURN_IF_ERROR(CheckSqliteAction(connection, target, action, schema_));
    if (action == ResultAction::kMake || action == ResultAction::kReplace) {
      RETURN_IF_ERROR(Rename(target));
    } else {
      RETURN_IF_ERROR(Fill(target.name, action));
    }
    if (action != ResultAction::kAppend || target.found->IsOurs()) {
      ASSIGN_OR_RETURN(const FoundTable written, FindWrittenSqliteTable(connection, wanted_.name));
      RETURN_IF_ERROR(RecordResultTable(connection, Dialect::kSqlite, wanted_, written));
    }
    return transaction->Commit();
  }

  Status Rename(const SqliteTarget& target) REQUIRES(mutex_) {
    if (target.found) {
      RETURN_IF_ERROR(connection_->Run("DROP TABLE " + target.name.Quoted()));
    }
    return connection_->Run(fmt::format("ALTER TABLE {} RENAME TO {}", staging_.name().Quoted(),
                                        QuoteName(wanted_.name.name)));
  }

  Status Fill(const TableName& table, ResultAction action) REQUIRES(mutex_) {
    if (action == ResultAction::kRefill) {
      // A foreign key is satisfied again at COMMIT.
      RETURN_IF_ERROR(connection_->Run("PRAGMA defer_foreign_keys = ON"));
      RETURN_IF_ERROR(connection_->Run("DELETE FROM " + table.Quoted()));
      ASSIGN_OR_RETURN(const int64_t left,
                       connection_->QueryInteger(
                           fmt::format("SELECT EXISTS (SELECT 1 FROM {})", table.Quoted())));
      if (left != 0) {
        return FailedPrecondition("a trigger of the table keeps rows from being deleted")
            .Hint("drop it, or name another table");
      }
    }
    if (action == ResultAction::kAppend) {
      RETURN_IF_ERROR(CheckAppendedCells(*connection_, table, staging_.name(), schema_));
    }
    const std::string columns = ColumnList(schema_);
    RETURN_IF_ERROR(
        connection_->Run(fmt::format("INSERT INTO {} ({}) SELECT {} FROM {}", table.Quoted(),
                                     columns, columns, staging_.name().Quoted())));
    arrived_ = sqlite3_changes64(connection_->handle());
    if (action == ResultAction::kRefill) {
      RETURN_IF_ERROR(CheckSqliteArrived(*connection_, table, staging_.name()));
    }
    return connection_->Run("DROP TABLE " + staging_.name().Quoted());
  }

  SqliteDatabase& database_;
  const ResultTable wanted_;
  const SqliteStaging staging_{wanted_.name};
  const Schema schema_;
  const std::string insertion_;
  Mutex mutex_;
  SqlitePool::Lease connection_ GUARDED_BY(mutex_);
  std::string staged_columns_ GUARDED_BY(mutex_);
  bool committed_ GUARDED_BY(mutex_) = false;
  std::optional<int64_t> arrived_ GUARDED_BY(mutex_);
};

// The columns of a table with this definition, determined by a temporary table.
Result<std::string> StagedColumns(SqliteConnection& connection, const Schema& schema) {
  const SqliteStaging table({"temp", ""});
  ASSIGN_OR_RETURN(const auto transaction,
                   SqlTransaction::Begin(connection, Dialect::kSqlite, false));
  RETURN_IF_ERROR(connection.Run(table.Definition(schema)));
  return SqliteColumns(connection, table.name());
}

Result<ResultPlan> Plan(SqliteConnection& connection, const ResultTable& wanted,
                        const Schema* schema) {
  ASSIGN_OR_RETURN(const SqliteTarget target, FindSqliteTarget(connection, wanted.name));
  // First the checks that do not depend on the columns.
  ASSIGN_OR_RETURN(ResultAction action, DecideResultAction(wanted, target.found, std::nullopt));
  if (schema != nullptr) {
    ASSIGN_OR_RETURN(const std::string columns, StagedColumns(connection, *schema));
    ASSIGN_OR_RETURN(action, DecideResultAction(wanted, target.found, columns));
    RETURN_IF_ERROR(CheckSqliteAction(connection, target, action, *schema));
  }
  return ResultPlan{target.name, action};
}

}  // namespace

Result<ResultPlan> PlanSqliteResult(SqliteDatabase& database, const ResultTable& table,
                                    const Schema* columns) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  return Plan(*connection, table, columns);
}

Result<std::unique_ptr<TableWriter>> OpenSqliteWriter(SqliteDatabase& database,
                                                      CatalogTables& tables,
                                                      const ResultTable& table,
                                                      const Schema& schema) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  RETURN_IF_ERROR(tables.CreateResultTables(*connection));
  ASSIGN_OR_RETURN(const ResultPlan plan, Plan(*connection, table, &schema));
  RETURN_IF_ERROR(DropAbandonedStaging(*connection, plan.name.schema));
  ResultTable wanted = table;
  wanted.name = plan.name;
  auto writer = std::make_unique<SqliteTableWriter>(database, std::move(connection),
                                                    std::move(wanted), schema);
  RETURN_IF_ERROR(writer->Begin());
  return std::unique_ptr<TableWriter>(std::move(writer));
}

Status AppendSqliteRows(SqliteDatabase& database, const TableName& table, const Schema& schema,
                        const RowBatch& batch) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.writers().Take());
  ASSIGN_OR_RETURN(const SqliteTarget target, FindSqliteTarget(*connection, table));
  if (!target.found) {
    Status created = connection->Run(SqliteTableDefinition(target.name.Quoted(), schema));
    if (!created.ok() && created.sqlstate() != "42P07") {
      return created;
    }
  }
  return InsertBatch(*connection, Insertion(target.name.Quoted(), schema), batch);
}

}  // namespace sluice::catalog
