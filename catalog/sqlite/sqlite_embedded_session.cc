#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <utility>

#include "base/letter_case.h"
#include "base/log.h"
#include "catalog/embedded_memory.h"
#include "catalog/embedded_session.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sqlite/sqlite_cell_internal.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_database_internal.h"
#include "catalog/sqlite/sqlite_dialect_internal.h"
#include "catalog/sqlite/sqlite_guard_internal.h"
#include "catalog/sqlite/sqlite_parameter_types_internal.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"
#include "catalog/sqlite/sqlite_place_internal.h"
#include "catalog/sqlite/sqlite_unforeseen_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kUrl = "sqlite:";
constexpr size_t kMostParameters = 65'535;  // that the protocol has room for

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

// PostgreSQL's clients have values for $1, $2, ... only; others would be NULL.
Status CheckNumbered(sqlite3_stmt* statement) {
  for (int i = 1; i <= sqlite3_bind_parameter_count(statement); ++i) {
    const char* const name = sqlite3_bind_parameter_name(statement, i);
    if (name != nullptr && (std::isdigit(static_cast<unsigned char>(name[1])) == 0 ||
                            std::strtoul(name + 1, nullptr, 10) > kMostParameters)) {
      return InvalidArgument(fmt::format("there is no parameter {}", name))
          .SqlState("42P02")
          .Hint(fmt::format("parameters are $1, $2, ... ${}", kMostParameters));
    }
  }
  return OkStatus();
}

Status Interrupted() {
  return DatabaseError("57014", "interrupted");
}

class SqliteEmbeddedStatement final : public EmbeddedStatement {
 public:
  // `written`: as the client wrote it, if that differs from `sql`.
  SqliteEmbeddedStatement(SqliteConnection& connection, SqliteGuard& guard, SqlitePlace& place,
                          std::atomic<bool>& interrupted, SqliteStatement statement,
                          std::string sql, std::optional<std::string_view> written)
      : connection_(connection),
        guard_(guard),
        place_(place),
        interrupted_(interrupted),
        statement_(std::move(statement)),
        vacuum_(guard.vacuum()),
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
    int code = SQLITE_OK;
    {
      interrupted_ = false;
      const EndsAllocations ends([this] { return interrupted_.load(); });
      code = sqlite3_step(statement_.get());
    }
    if (interrupted_ && code == SQLITE_NOMEM) {
      return Interrupted();
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

// A query of the catalogs that is not supported: has the columns that it asks for, and no rows.
class EmptyStatement final : public EmbeddedStatement {
 public:
  explicit EmptyStatement(std::string_view sql) {
    for (const SelectItem& item : SelectItems(sql)) {
      columns_.push_back({item.name, PostgresTypeOf("text")});
    }
    if (columns_.empty()) {
      columns_.push_back({"?column?", PostgresTypeOf("text")});
    }
  }
  const std::vector<Column>& columns() const override { return columns_; }
  size_t parameters() const override { return 0; }
  bool read_only() const override { return true; }
  size_t bytes() const override { return columns_.size() * sizeof(Column); }
  Status Bind(size_t /*number*/, const SqlParameter& /*value*/) override { return OkStatus(); }
  Result<bool> Step() override { return false; }
  EmbeddedCell Cell(size_t /*column*/) const override { return {}; }
  void Reset() override {}

 private:
  std::vector<Column> columns_;
};

std::string FirstWordOf(std::string_view sql) {
  const std::vector<SqlToken> tokens = TokenizeSql(sql.substr(0, 200), Dialect::kSqlite);
  return tokens.empty() ? std::string()
                        : LowerAscii(sql.substr(tokens[0].begin, tokens[0].end - tokens[0].begin));
}

class SqliteEmbeddedSession final : public EmbeddedSession {
 public:
  SqliteEmbeddedSession(std::unique_ptr<SqliteConnection> connection, SqliteLocation location,
                        Options options, std::shared_ptr<SharedCatalogs> catalogs)
      : connection_(std::move(connection)),
        guard_(connection_->handle()),
        place_(location),
        catalog_(*connection_, std::move(location), std::move(options), std::move(catalogs)) {}

  Status Begin() {
    const SqliteGuard::Open open(guard_);
    // Waiting for a lock must not occupy a thread.
    sqlite3_busy_handler(connection_->handle(), nullptr, nullptr);
    // Both main.t and public.t are tables of the file.
    sqlite3_db_config(connection_->handle(), SQLITE_DBCONFIG_MAINDBNAME, "public");
    sqlite3_db_config(connection_->handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    RETURN_IF_ERROR(place_.Check());
    return catalog_.Attach();
  }

  Result<std::unique_ptr<EmbeddedStatement>> Prepare(std::string_view sql) override {
    interrupted_ = false;
    const EndsAllocations ends([this] { return interrupted_.load(); });
    Result<std::unique_ptr<EmbeddedStatement>> prepared = Prepared(sql);
    return !prepared.ok() && ends.ended() ? Interrupted() : std::move(prepared);
  }

  Result<std::vector<uint32_t>> ParameterTypes(std::string_view sql, size_t count) override {
    return SqliteParameterTypes(*connection_, sql, count);
  }

  Status Run(std::string_view sql) override {
    guard_.BeginStep(false);
    const SqliteGuard::Open open(guard_);
    if (sql.starts_with("ROLLBACK")) {
      catalog_.Forget();
    }
    if (sql == "COMMIT") {  // into a file that is not there any more, it would be lost
      RETURN_IF_ERROR(place_.Check());
    }
    return connection_->Run(sql);
  }

  Transaction transaction() const override {
    if (sqlite3_get_autocommit(connection_->handle()) != 0) {
      return Transaction::kNone;
    }
    switch (sqlite3_txn_state(connection_->handle(), "main")) {
      case SQLITE_TXN_WRITE:
        return Transaction::kWrite;
      case SQLITE_TXN_READ:
        return Transaction::kRead;
      default:
        return Transaction::kIdle;
    }
  }

  int64_t changes() const override { return sqlite3_changes64(connection_->handle()); }

  Result<std::string> TemporaryNameIn(std::string_view sql) override {
    ASSIGN_OR_RETURN(const SqlRows rows,
                     connection_->Query("SELECT name FROM temp.sqlite_schema WHERE type IN"
                                        " ('table', 'view')",
                                        {}));
    if (rows.empty()) {
      return std::string();
    }
    for (const SqlToken& token : TokenizeSql(sql, Dialect::kSqlite)) {
      if (token.kind != SqlToken::Kind::kWord && token.kind != SqlToken::Kind::kQuotedName) {
        continue;
      }
      const auto name =
          ParseTableName(sql.substr(token.begin, token.end - token.begin), Dialect::kSqlite);
      for (const std::vector<Value>& row : rows) {
        if (name.ok() && LowerAscii(name->name) == LowerAscii(TextCell(row[0]))) {
          return TextCell(row[0]);
        }
      }
    }
    return std::string();
  }

  void ReleaseCaches() override { sqlite3_db_release_memory(connection_->handle()); }

  void Interrupt() override {
    interrupted_ = true;
    sqlite3_interrupt(connection_->handle());
  }

 private:
  Result<std::unique_ptr<EmbeddedStatement>> Prepared(std::string_view sql) {
    SeeNewTables();
    const bool names_catalog = NamesPgCatalog(sql);
    if (names_catalog) {
      const SqliteGuard::Open open(guard_);
      ASSIGN_OR_RETURN(const bool changed, catalog_.Provide(NamedPgRelations(sql)));
      if (changed) {
        guard_.Renew();
      }
    }
    // The catalogs of PostgreSQL's clients are attached, and are nobody's to analyze.
    const std::optional<std::string> rewritten =
        LowerAscii(sql) == "analyze" ? "ANALYZE main" : InSqliteDialect(sql, names_catalog);
    const std::string text = rewritten.value_or(std::string(sql));
    guard_.Begin(text);  // sluice.models has become sluice_models
    Result<SqliteStatement> prepared = connection_->Prepare(text);
    if (prepared.ok()) {
      RETURN_IF_ERROR(CheckNumbered(prepared->get()));
      return std::unique_ptr<EmbeddedStatement>(std::make_unique<SqliteEmbeddedStatement>(
          *connection_, guard_, place_, interrupted_, *std::move(prepared), text,
          rewritten.has_value() ? std::optional(sql) : std::nullopt));
    }
    if (!guard_.refusal().empty()) {
      return DatabaseError("42501", guard_.refusal());
    }
    if (transaction() == Transaction::kNone) {
      RETURN_IF_ERROR(place_.Check());
    }
    const Status refused =
        AtName(rewritten.has_value() ? prepared.status().MovedTo({}) : prepared.status(), sql);
    const std::string word = FirstWordOf(sql);
    if (!names_catalog || (word != "select" && word != "with")) {
      return refused;
    }
    RETURN_IF_ERROR(ErrorOfCatalogQuery(sql, refused));
    log::Debug("a query of the catalogs is answered without rows: {}; {}", refused.message(), sql);
    return std::unique_ptr<EmbeddedStatement>(std::make_unique<EmptyStatement>(sql));
  }

  void SeeNewTables() {
    if (transaction() == Transaction::kNone) {
      const SqliteGuard::Open open(guard_);
      connection_->SeeNewTables();
    }
  }

  const std::unique_ptr<SqliteConnection> connection_;
  SqliteGuard guard_;
  SqlitePlace place_;
  SqlitePgCatalog catalog_;
  std::atomic<bool> interrupted_ = false;
};

}  // namespace

Result<std::unique_ptr<EmbeddedSession>> OpenEmbeddedSession(
    std::string_view url, EmbeddedSession::Options options,
    std::shared_ptr<SharedCatalogs> catalogs) {
  if (!url.starts_with(kUrl)) {
    return InvalidArgument("only a SQLite database is embedded");
  }
  const SqliteLocation location = LocateSqlite(url.substr(kUrl.size()));
  std::error_code ignored;
  if (!location.in_memory() && !std::filesystem::exists(location.path, ignored)) {
    return DatabaseError("58P01", fmt::format("the database file {} is gone", location.path));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<SqliteConnection> connection,
                   SqliteConnection::Open(location, SqliteConnection::Access::kReadWrite));
  auto session = std::make_unique<SqliteEmbeddedSession>(std::move(connection), location,
                                                         std::move(options), std::move(catalogs));
  RETURN_IF_ERROR(session->Begin());
  return std::unique_ptr<EmbeddedSession>(std::move(session));
}

std::vector<Span> SplitEmbeddedScript(std::string_view sql) {
  std::vector<Span> statements;
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kSqlite);
  const auto word = [&](size_t at) {
    return at < tokens.size()
               ? LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin))
               : std::string();
  };
  size_t begin = 0;  // the statement's first token
  bool trigger = false;
  for (size_t at = 0; at <= tokens.size(); ++at) {
    if (at == begin) {
      const size_t what = begin + (word(begin + 1).starts_with("temp") ? 2 : 1);
      trigger = word(begin) == "create" && word(what) == "trigger";
    }
    const bool semicolon = at < tokens.size() && word(at) == ";" && tokens[at].depth == 0;
    const bool inside = trigger && !(word(at - 1) == "end" && at >= 2 && word(at - 2) == ";");
    if (at < tokens.size() && (!semicolon || inside)) {
      continue;
    }
    if (at > begin) {
      statements.push_back(
          {static_cast<int64_t>(tokens[begin].begin), static_cast<int64_t>(tokens[at - 1].end)});
    }
    begin = at + 1;
  }
  return statements;
}

}  // namespace sluice::catalog
