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
#include "catalog/sqlite/sqlite_embedded_statement_internal.h"
#include "catalog/sqlite/sqlite_guard_internal.h"
#include "catalog/sqlite/sqlite_parameter_types_internal.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"
#include "catalog/sqlite/sqlite_place_internal.h"
#include "catalog/sqlite/sqlite_unforeseen_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kUrl = "sqlite:";
constexpr size_t kMostParameters = 65'535;  // that the protocol has room for

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
    const EndsAllocations ends([this] { return interrupted_.load(); });
    Result<std::unique_ptr<EmbeddedStatement>> prepared = Prepared(sql);
    return interrupted_.exchange(false) ? InterruptedStatement() : std::move(prepared);
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
  void ForgetInterrupt() override { interrupted_ = false; }

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
      return MakeEmbeddedStatement({*connection_, guard_, place_, interrupted_},
                                   *std::move(prepared), text,
                                   rewritten.has_value() ? std::optional(sql) : std::nullopt);
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
