#include <fmt/core.h>

#include <stop_token>
#include <utility>

#include "base/mutex.h"
#include "catalog/postgres_copy_internal.h"
#include "catalog/postgres_database_internal.h"
#include "catalog/row_ranges_internal.h"

namespace sluice::catalog {
namespace {

// Others that read the table which is replaced are waited for this long.
constexpr std::string_view kSwapPatience = "SET LOCAL lock_timeout = '30s'";

std::string CopyStatement(const std::string& quoted_table, const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    columns += (columns.empty() ? "" : ", ") + QuoteName(column.name);
  }
  return fmt::format("COPY {} ({}) FROM STDIN", quoted_table, columns);
}

// One COPY with the rows of a batch. Reads its results until libpq is idle again.
Status CopyRows(PostgresConnection& connection, const std::string& copy, std::string_view text) {
  PGconn* handle = connection.handle();
  RETURN_IF_ERROR(connection.CheckStop());
  const bool sent = PQsendQuery(handle, copy.c_str()) != 0;
  const PostgresResult begun = sent ? connection.Await() : nullptr;
  if (PQresultStatus(begun.get()) != PGRES_COPY_IN) {
    const Status refused = connection.ErrorOf(begun.get(), "");
    connection.Drain().ok();  // the error is all there is to say
    return refused;
  }
  // libpq waits where the server takes no more: for a trigger, or for a lock.
  const std::stop_callback cancel(connection.stop(), [&connection] { connection.Cancel(); });
  constexpr size_t kPiece = size_t{1} << 20;  // libpq keeps a copy of what it could not send yet
  for (size_t at = 0; at < text.size(); at += kPiece) {
    const std::string_view piece = text.substr(at, kPiece);
    if (PQputCopyData(handle, piece.data(), static_cast<int>(piece.size())) != 1) {
      return connection.ConnectionLost();
    }
  }
  if (PQputCopyEnd(handle, nullptr) != 1) {
    return connection.ConnectionLost();
  }
  return connection.Drain();
}

// GRANT statements that give a new table the rights of the one it replaces.
Result<std::vector<std::string>> GrantsOf(PostgresConnection& connection, const TableName& table) {
  ASSIGN_OR_RETURN(
      const PostgresResult grants,
      connection.Ask("SELECT format('GRANT %s ON TABLE %s TO %s%s', a.privilege_type, $1::text,"
                     " CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE"
                     " quote_ident(pg_get_userbyid(a.grantee)) END,"
                     " CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)"
                     " FROM pg_class c, aclexplode(c.relacl) a"
                     " WHERE c.oid = to_regclass($1) AND a.grantee <> c.relowner",
                     {table.Quoted()}));
  std::vector<std::string> statements;
  statements.reserve(static_cast<size_t>(PQntuples(grants.get())));
  for (int i = 0; i < PQntuples(grants.get()); ++i) {
    statements.emplace_back(PostgresText(grants.get(), i, 0));
  }
  return statements;
}

// Everything happens in one transaction of one connection: whoever dies before COMMIT leaves
// nothing behind, and the table that is replaced stays as it was.
class PostgresTableWriter final : public TableWriter {
 public:
  PostgresTableWriter(PostgresPool::Lease connection, TableName table, TableName staging,
                      const Schema& schema)
      : table_(std::move(table)),
        staging_(std::move(staging)),
        copy_(CopyStatement(staging_.Quoted(), schema)),
        columns_(schema.columns.size()),
        connection_(std::move(connection)) {}

  ~PostgresTableWriter() override {
    MutexLock lock(mutex_);
    connection_->Rollback();
  }

  Status Write(const RowBatch& batch) override {
    if (batch.columns.size() != columns_) {
      return Internal(fmt::format("a batch for table {} has {} columns; expected {}", table_.name,
                                  batch.columns.size(), columns_));
    }
    const std::string text = CopyText(batch);
    MutexLock lock(mutex_);
    if (failure_.ok()) {
      failure_ = CopyRows(*connection_, copy_, text).Because("cannot write " + table_.name);
    }
    return failure_;
  }

  Status Commit() override {
    MutexLock lock(mutex_);
    if (failure_.ok()) {
      failure_ = Swap().Because("cannot write " + table_.name);
    }
    return failure_;
  }

 private:
  Status Swap() REQUIRES(mutex_) {
    PostgresConnection& connection = *connection_;
    RETURN_IF_ERROR(connection.Run(std::string(kSwapPatience)));
    ASSIGN_OR_RETURN(const std::vector<std::string> grants, GrantsOf(connection, table_));
    RETURN_IF_ERROR(connection.Run("DROP TABLE IF EXISTS " + table_.Quoted()));
    RETURN_IF_ERROR(connection.Run(
        fmt::format("ALTER TABLE {} RENAME TO {}", staging_.Quoted(), QuoteName(table_.name))));
    for (const std::string& grant : grants) {
      RETURN_IF_ERROR(connection.Run(grant));
    }
    return connection.Run("COMMIT");
  }

  const TableName table_;
  const TableName staging_;
  const std::string copy_;
  const size_t columns_;
  Mutex mutex_;
  PostgresPool::Lease connection_ GUARDED_BY(mutex_);
  Status failure_ GUARDED_BY(mutex_);  // the first one; the transaction is lost with it
};

// The schema in which a table of that name is, or would be made.
Result<TableName> FullName(PostgresConnection& connection, std::string_view table) {
  ASSIGN_OR_RETURN(TableName name, ParseTableName(table, Dialect::kPostgres));
  if (name.schema.empty()) {
    ASSIGN_OR_RETURN(
        const PostgresResult found,
        connection.Ask("SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n"
                       " ON n.oid = c.relnamespace WHERE c.oid = to_regclass($1)),"
                       " current_schema())",
                       {name.Quoted()}));
    name.schema = PostgresText(found.get(), 0, 0);
    if (name.schema.empty()) {
      return InvalidArgument(fmt::format("there is no schema to create table '{}' in", name.name))
          .SqlState("3F000")
          .Hint("write schema.table, or SET search_path");
    }
  }
  return name;
}

}  // namespace

Result<std::unique_ptr<TableWriter>> CreatePostgresTable(PostgresDatabase& database,
                                                         std::string_view table,
                                                         const Schema& schema) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForStatement());
  ASSIGN_OR_RETURN(TableName name, FullName(*connection, table));
  TableName staging = {name.schema, "sluice_new_" + RandomSuffix()};
  ASSIGN_OR_RETURN(const std::string definition,
                   PostgresTableDefinition(*connection, staging.Quoted(), schema));
  RETURN_IF_ERROR(connection->Run("BEGIN; " + std::string(kPinnedText)));
  RETURN_IF_ERROR(
      connection->Run(definition).Because(fmt::format("cannot create table {}", name.name)));
  return std::unique_ptr<TableWriter>(
      new PostgresTableWriter(std::move(connection), std::move(name), std::move(staging), schema));
}

Status AppendPostgresRows(PostgresDatabase& database, std::string_view table, const Schema& schema,
                          const RowBatch& batch) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.pool().Take());
  ASSIGN_OR_RETURN(const TableName name, FullName(*connection, table));
  ASSIGN_OR_RETURN(const PostgresResult exists,
                   connection->Ask("SELECT to_regclass($1) IS NOT NULL", {name.Quoted()}));
  if (PostgresText(exists.get(), 0, 0) != "t") {
    ASSIGN_OR_RETURN(const std::string definition,
                     PostgresTableDefinition(*connection, name.Quoted(), schema));
    Status created = connection->Run(definition);
    if (!created.ok() && created.sqlstate() != "42P07") {
      return created;
    }
  }
  return CopyRows(*connection, CopyStatement(name.Quoted(), schema), CopyText(batch));
}

}  // namespace sluice::catalog
