#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "base/log.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sqlite_database_internal.h"
#include "catalog/sqlite_insert_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kStagingMark = "__sluice_new_";

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

std::string SchemaTable(const TableName& table) {
  return table.schema.empty() ? "sqlite_schema" : QuoteName(table.schema) + ".sqlite_schema";
}

// Staging tables of writers whose process is gone.
Status DropStaleStaging(SqliteConnection& connection, const TableName& table) {
  const std::string prefix = table.name + std::string(kStagingMark);
  ASSIGN_OR_RETURN(const SqlRows rows,
                   connection.Query(fmt::format("SELECT name FROM {} WHERE type = 'table'"
                                                " AND substr(name, 1, length($1)) = $1",
                                                SchemaTable(table)),
                                    {prefix}));
  for (const std::vector<Value>& row : rows) {
    const std::string name = TextCell(row.at(0));
    pid_t owner = 0;
    const auto parsed =
        std::from_chars(name.data() + prefix.size(), name.data() + name.size(), owner);
    if (parsed.ec == std::errc() && owner > 0 && kill(owner, 0) != 0 && errno == ESRCH) {
      RETURN_IF_ERROR(connection.Run("DROP TABLE " + TableName{table.schema, name}.Quoted()));
    }
  }
  return OkStatus();
}

// Rows arrive in a staging table, one transaction for each batch, so that the file's write lock is
// free in between: progress and metrics of the same job are written to the same file.
class SqliteTableWriter final : public TableWriter {
 public:
  SqliteTableWriter(SqlitePool::Lease connection, TableName table, TableName staging,
                    const Schema& schema)
      : table_(std::move(table)),
        staging_(std::move(staging)),
        insertion_(Insertion(staging_.Quoted(), schema)),
        columns_(schema.columns.size()),
        connection_(std::move(connection)) {}

  ~SqliteTableWriter() override {
    MutexLock lock(mutex_);
    if (committed_) {
      return;
    }
    const Status dropped = connection_->Run("DROP TABLE IF EXISTS " + staging_.Quoted());
    if (!dropped.ok()) {
      log::Warn("cannot drop staging table={} error=\"{}\"", staging_.name, dropped.message());
    }
  }

  Status Write(const RowBatch& batch) override {
    if (batch.columns.size() != columns_) {
      return Internal(fmt::format("a batch for table {} has {} columns; expected {}", table_.name,
                                  batch.columns.size(), columns_));
    }
    MutexLock lock(mutex_);
    return InsertBatch(*connection_, insertion_, batch).Because("cannot write " + table_.name);
  }

  Status Commit() override {
    MutexLock lock(mutex_);
    ASSIGN_OR_RETURN(const auto transaction,
                     SqlTransaction::Begin(*connection_, Dialect::kSqlite, true));
    RETURN_IF_ERROR(connection_->Run("DROP TABLE IF EXISTS " + table_.Quoted()));
    RETURN_IF_ERROR(connection_->Run(
        fmt::format("ALTER TABLE {} RENAME TO {}", staging_.Quoted(), QuoteName(table_.name))));
    RETURN_IF_ERROR(transaction->Commit());
    committed_ = true;
    return OkStatus();
  }

 private:
  const TableName table_;
  const TableName staging_;
  const std::string insertion_;
  const size_t columns_;
  Mutex mutex_;
  SqlitePool::Lease connection_ GUARDED_BY(mutex_);
  bool committed_ GUARDED_BY(mutex_) = false;
};

}  // namespace

Result<std::unique_ptr<TableWriter>> CreateSqliteTable(SqliteDatabase& database,
                                                       std::string_view table,
                                                       const Schema& schema) {
  ASSIGN_OR_RETURN(TableName name, ParseTableName(table, Dialect::kSqlite));
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  RETURN_IF_ERROR(DropStaleStaging(*connection, name));
  TableName staging = {name.schema,
                       fmt::format("{}{}{}_{}", name.name, kStagingMark, getpid(), RandomSuffix())};
  RETURN_IF_ERROR(connection->Run(SqliteTableDefinition(staging.Quoted(), schema))
                      .Because(fmt::format("cannot create table {}", name.name)));
  return std::unique_ptr<TableWriter>(
      new SqliteTableWriter(std::move(connection), std::move(name), std::move(staging), schema));
}

Status AppendSqliteRows(SqliteDatabase& database, std::string_view table, const Schema& schema,
                        const RowBatch& batch) {
  ASSIGN_OR_RETURN(const TableName name, ParseTableName(table, Dialect::kSqlite));
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.writers().Take());
  ASSIGN_OR_RETURN(const SqlRows exists,
                   connection->Query(fmt::format("SELECT 1 FROM {} WHERE type IN ('table', 'view')"
                                                 " AND lower(name) = lower($1)",
                                                 SchemaTable(name)),
                                     {name.name}));
  if (exists.empty()) {
    Status created = connection->Run(SqliteTableDefinition(name.Quoted(), schema));
    if (!created.ok() && created.sqlstate() != "42P07") {
      return created;
    }
  }
  return InsertBatch(*connection, Insertion(name.Quoted(), schema), batch);
}

}  // namespace sluice::catalog
