#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "catalog/postgres/postgres_copy_internal.h"
#include "catalog/postgres/postgres_database_internal.h"
#include "catalog/postgres/postgres_result_table_internal.h"
#include "catalog/postgres/postgres_table_definition_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/table_loader.h"

namespace sluice::catalog {
namespace {

// "COPY people, line 3, column age: "x"": libpq provides the place only here.
RefusedRow PlaceOfContext(std::string_view context) {
  constexpr std::string_view kLine = ", line ";
  constexpr std::string_view kColumn = ", column ";
  RefusedRow refused;
  const size_t line = context.rfind(kLine, context.find('\n'));
  if (!context.starts_with("COPY ") || line == std::string_view::npos) {
    return refused;
  }
  std::string_view rest = context.substr(line + kLine.size());
  size_t number = 0;
  const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (read.ec == std::errc() && number > 0) {
    refused.row = number - 1;
  }
  rest.remove_prefix(static_cast<size_t>(read.ptr - rest.data()));
  if (rest.starts_with(kColumn)) {
    rest.remove_prefix(kColumn.size());
    refused.column = rest.substr(0, rest.find(": "));
  }
  return refused;
}

class PostgresTableLoader final : public TableLoader {
 public:
  PostgresTableLoader(PostgresPool::Lease connection, const TableName& table, const Schema& columns)
      : connection_(std::move(connection)),
        copy_(fmt::format("COPY {} ({}) FROM STDIN", table.Quoted(), ColumnList(columns))) {}
  ~PostgresTableLoader() override {
    connection_->Rollback();  // does nothing after COMMIT
  }

  // One COPY per batch.
  Status Write(const RowBatch& batch, RefusedRow* refused) override {
    std::string context;
    Status written = CopyRows(*connection_, copy_, CopyText(batch), &context);
    *refused = PlaceOfContext(context);
    return written;
  }

  Status Commit() override { return connection_->Commit(); }

 private:
  PostgresPool::Lease connection_;
  const std::string copy_;
};

}  // namespace

Result<std::unique_ptr<TableLoader>> OpenPostgresLoader(PostgresDatabase& database,
                                                        const TableName& table,
                                                        const Schema& columns, bool make) {
  ASSIGN_OR_RETURN(PostgresPool::Lease connection, database.TakeForStatement());
  RETURN_IF_ERROR(connection->Begin("BEGIN ISOLATION LEVEL READ COMMITTED"));
  Status made;
  if (make) {
    for (const ColumnInfo& column : columns.columns) {
      made.Add(CheckPostgresName(column.name));
    }
    made = made.ok() ? MakePostgresTable(*connection, table.Quoted(), columns) : made;
  }
  if (!made.ok()) {
    connection->Rollback();
    return made;
  }
  return std::unique_ptr<TableLoader>(
      new PostgresTableLoader(std::move(connection), table, columns));
}

}  // namespace sluice::catalog
