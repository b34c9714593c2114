#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "catalog/embedded_memory.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_cell_internal.h"
#include "catalog/sqlite/sqlite_dialect_internal.h"
#include "catalog/sqlite/sqlite_embedded_statement_internal.h"

namespace sluice::catalog {
namespace {

size_t CountPlaces(sqlite3_stmt* statement) {
  size_t most = 0;
  for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    const size_t number =
        name == nullptr ? static_cast<size_t>(i) : std::strtoul(name + 1, nullptr, 10);
    most = std::max(most, number);
  }
  return most;
}

class SqliteEmbeddedStatement final : public EmbeddedStatement {
 public:
  SqliteEmbeddedStatement(const EmbeddedSessionParts& session, SqliteStatement statement,
                          std::string sql, std::optional<std::string_view> written)
      : connection_(session.connection),
        guard_(session.guard),
        place_(session.place),
        interrupted_(session.interrupted),
        statement_(std::move(statement)),
        vacuum_(guard_.vacuum()),
        sql_(std::move(sql)),
        rewritten_(written.has_value()),
        parameters_(CountPlaces(statement_.get())) {
    const int count = sqlite3_column_count(statement_.get());
    std::vector<SelectItem> items;
    for (int i = 0; i < count; ++i) {
      const char* name = sqlite3_column_name(statement_.get(), i);
      const char* declared = sqlite3_column_decltype(statement_.get(), i);
      Column& column = columns_.emplace_back();
      column.name = name == nullptr ? "" : name;
      column.type = PostgresTypeOf(declared == nullptr ? "" : declared);
    }
    const bool untyped = std::any_of(columns_.begin(), columns_.end(),
                                     [](const Column& column) { return column.type.oid == 0; });
    if (untyped || rewritten_) {
      items = SelectItems(sql_);
    }
    for (size_t i = 0; i < columns_.size() && items.size() == columns_.size(); ++i) {
      columns_[i].type = columns_[i].type.oid == 0 ? items[i].type : columns_[i].type;
    }
    if (rewritten_) {
      const std::vector<SelectItem> names = SelectItems(*written);
      for (size_t i = 0; i < columns_.size() && names.size() == columns_.size(); ++i) {
        columns_[i].name = names[i].name;
      }
    }
  }

  const std::vector<Column>& columns() const override { return columns_; }
  size_t parameters() const override { return parameters_; }
  bool read_only() const override { return sqlite3_stmt_readonly(statement_.get()) != 0; }
  size_t bytes() const override {
    return sql_.size() +
           static_cast<size_t>(sqlite3_stmt_status(statement_.get(), SQLITE_STMTSTATUS_MEMUSED, 0));
  }

  Status Bind(size_t number, const SqlParameter& value) override {
    for (const std::string& name :
         {fmt::format("${}", number), fmt::format("?{}", number), fmt::format(":{}", number)}) {
      const int index = sqlite3_bind_parameter_index(statement_.get(), name.c_str());
      if (index > 0) {
        return BindAt(index, value);
      }
    }
    return OkStatus();  // the statement does not use it
  }

  Result<bool> Step() override {
    if (sqlite3_stmt_busy(statement_.get()) == 0) {
      guard_.BeginStep(vacuum_);
      if (sqlite3_get_autocommit(connection_.handle()) != 0) {
        RETURN_IF_ERROR(place_.Check());
      }
    }
    if (interrupted_.exchange(false)) {  // SQLite forgets what came before the first step
      return InterruptedStatement();
    }
    int code = SQLITE_OK;
    {
      const EndsAllocations ends([this] { return interrupted_.load(); });
      code = sqlite3_step(statement_.get());
    }
    if ((code == SQLITE_NOMEM || code == SQLITE_INTERRUPT) && interrupted_.exchange(false)) {
      return InterruptedStatement();
    }
    if (code == SQLITE_DONE) {
      return false;
    }
    if (code != SQLITE_ROW) {
      if (code == SQLITE_AUTH && !guard_.refusal().empty()) {  // of a file that VACUUM INTO uses
                                                               // internally
        return DatabaseError("42501", guard_.refusal());
      }
      if (sqlite3_extended_errcode(connection_.handle()) == SQLITE_BUSY_SNAPSHOT) {
        return DatabaseError("40001",
                             "could not serialize access: another session has changed the database "
                             "since this transaction began to read")
            .Hint("ROLLBACK, and run the transaction again");
      }
      return connection_.LastError(rewritten_ ? "" : std::string_view(sql_));
    }
    if (std::cmp_not_equal(sqlite3_column_count(statement_.get()), columns_.size())) {
      return Unimplemented("cached plan must not change result type");
    }
    return true;
  }

  EmbeddedCell Cell(size_t column) const override {
    // Once looked up; of a connection of one thread a value needs no protection.
    sqlite3_value* const value = sqlite3_column_value(statement_.get(), static_cast<int>(column));
    EmbeddedCell cell;
    switch (sqlite3_value_type(value)) {
      case SQLITE_INTEGER:
        cell.kind = EmbeddedCell::Kind::kInteger;
        cell.integer = sqlite3_value_int64(value);
        return cell;
      case SQLITE_FLOAT:
        cell.kind = EmbeddedCell::Kind::kReal;
        cell.real = sqlite3_value_double(value);
        return cell;
      case SQLITE_NULL:
        return cell;
      case SQLITE_TEXT:
        cell.kind = EmbeddedCell::Kind::kText;
        break;
      default:
        cell.kind = EmbeddedCell::Kind::kBlob;
        break;
    }
    cell.bytes = CellBytes(value);
    return cell;
  }

  void Reset() override { sqlite3_reset(statement_.get()); }

 private:
  Status BindAt(int index, const SqlParameter& value) {
    sqlite3_stmt* statement = statement_.get();
    int code = SQLITE_OK;
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      code = sqlite3_bind_int64(statement, index, *integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
      code = sqlite3_bind_double(statement, index, *number);
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      code = sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_TRANSIENT,
                                 SQLITE_UTF8);
    } else if (const auto* bytes = std::get_if<SqlBytes>(&value)) {
      code = sqlite3_bind_blob64(statement, index, bytes->bytes.empty() ? "" : bytes->bytes.data(),
                                 bytes->bytes.size(), SQLITE_TRANSIENT);
    } else {
      code = sqlite3_bind_null(statement, index);
    }
    return code == SQLITE_OK ? OkStatus() : connection_.LastError("");
  }

  SqliteConnection& connection_;
  SqliteGuard& guard_;
  SqlitePlace& place_;
  std::atomic<bool>& interrupted_;
  const SqliteStatement statement_;
  const bool vacuum_;
  const std::string sql_;
  const bool rewritten_;
  const size_t parameters_;
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<EmbeddedStatement> MakeEmbeddedStatement(const EmbeddedSessionParts& session,
                                                         SqliteStatement statement, std::string sql,
                                                         std::optional<std::string_view> written) {
  return std::make_unique<SqliteEmbeddedStatement>(session, std::move(statement), std::move(sql),
                                                   written);
}

Status InterruptedStatement() {
  return DatabaseError("57014", "interrupted");
}

}  // namespace sluice::catalog
