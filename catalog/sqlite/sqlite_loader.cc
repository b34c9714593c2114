#include <memory>
#include <utility>

#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_insert_internal.h"
#include "catalog/table_loader.h"

namespace sluice::catalog {
namespace {

class SqliteTableLoader final : public TableLoader {
 public:
  SqliteTableLoader(SqlitePool::Lease connection, std::unique_ptr<SqlTransaction> transaction,
                    SqliteStatement insertion, std::string text)
      : connection_(std::move(connection)),
        transaction_(std::move(transaction)),
        insertion_(std::move(insertion)),
        text_(std::move(text)) {}

  Status Write(const RowBatch& batch, RefusedRow* refused) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      for (size_t i = 0; i < batch.columns.size(); ++i) {
        if (BindCell(insertion_.get(), static_cast<int>(i) + 1, batch.columns[i], row) !=
            SQLITE_OK) {
          refused->row = row;
          return connection_->LastError(text_);
        }
      }
      if (sqlite3_step(insertion_.get()) != SQLITE_DONE) {
        refused->row = row;
        Status failed = connection_->LastError(text_);
        sqlite3_reset(insertion_.get());
        return failed;
      }
      sqlite3_reset(insertion_.get());
    }
    return OkStatus();
  }

  Status Commit() override {
    insertion_.reset();
    return transaction_->Commit();
  }

 private:
  SqlitePool::Lease connection_;  // released after the objects that use it
  std::unique_ptr<SqlTransaction> transaction_;
  SqliteStatement insertion_;
  const std::string text_;
};

}  // namespace

Result<std::unique_ptr<TableLoader>> OpenSqliteLoader(SqliteDatabase& database,
                                                      const TableName& table, const Schema& columns,
                                                      bool make) {
  ASSIGN_OR_RETURN(SqlitePool::Lease connection, database.TakeForStatement());
  ASSIGN_OR_RETURN(auto transaction, SqlTransaction::Begin(*connection, Dialect::kSqlite, true));
  if (make) {
    RETURN_IF_ERROR(connection->Run(SqliteTableDefinition(table.Quoted(), columns)));
  }
  std::string text = Insertion(table.Quoted(), columns);
  ASSIGN_OR_RETURN(SqliteStatement insertion, connection->Prepare(text));
  return std::unique_ptr<TableLoader>(new SqliteTableLoader(
      std::move(connection), std::move(transaction), std::move(insertion), std::move(text)));
}

}  // namespace sluice::catalog
