#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_connection_internal.h"
#include "catalog/sqlite/sqlite_guard_internal.h"

namespace sluice::catalog {
namespace {

// With an argument these say something of a table, or change this session or a number in the file
// that SQLite itself does not use. Without one no PRAGMA harms.
constexpr std::array<std::string_view, 24> kHarmless = {"table_info",
                                                        "table_xinfo",
                                                        "table_list",
                                                        "index_list",
                                                        "index_info",
                                                        "index_xinfo",
                                                        "foreign_key_list",
                                                        "foreign_key_check",
                                                        "integrity_check",
                                                        "quick_check",
                                                        "foreign_keys",
                                                        "defer_foreign_keys",
                                                        "user_version",
                                                        "application_id",
                                                        "cache_size",
                                                        "cache_spill",
                                                        "analysis_limit",
                                                        "automatic_index",
                                                        "optimize",
                                                        "case_sensitive_like",
                                                        "recursive_triggers",
                                                        "reverse_unordered_selects",
                                                        "threads",
                                                        "ignore_check_constraints"};
// SQLite's table of the numbers that it has given in columns with AUTOINCREMENT, of all tables.
constexpr std::string_view kNumbers = "sqlite_sequence";
// The schema to which VACUUM copies everything; a client attaches none.
constexpr std::string_view kVacuum = "vacuum_db";
constexpr std::array<std::string_view, 2> kSchemas = {"pg_catalog", "information_schema"};

// A token in lower case, without quotes: SQLite takes strings for names, too.
std::string WordOf(std::string_view sql, const SqlToken& token) {
  const std::string_view text = sql.substr(token.begin, token.end - token.begin);
  const bool quoted =
      token.kind == SqlToken::Kind::kQuotedName || token.kind == SqlToken::Kind::kString;
  return LowerAscii(quoted && text.size() >= 2 ? text.substr(1, text.size() - 2) : text);
}

}  // namespace

SqliteGuard::SqliteGuard(sqlite3* connection) : connection_(connection) {
  Renew();
}

void SqliteGuard::Renew() {
  sqlite3_set_authorizer(connection_, Ask, this);
}

// SQLite does not ask about the new name of ALTER TABLE ... RENAME TO, nor, while a trigger is
// created, about what it will do, nor about the table that a foreign key references: such a key
// could keep rows of Sluice's from being deleted.
void SqliteGuard::Begin(std::string_view sql) {
  BeginStep(false);
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kSqlite);
  const auto word = [&](size_t at) {
    return at < tokens.size() ? WordOf(sql, tokens[at]) : std::string();
  };
  const std::string first = word(0);
  vacuum_ = first == "vacuum";
  const bool trigger = first == "create" && (word(1) == "trigger" || word(2) == "trigger");
  if (first != "create" && first != "alter") {
    return;
  }
  for (size_t at = 2; at < tokens.size(); ++at) {
    const bool renamed = word(at - 2) == "rename" && word(at - 1) == "to";
    const bool referenced =
        word(at - 1) == "references" && tokens[at - 1].kind == SqlToken::Kind::kWord;
    // The tables behind a virtual one of the name "sluice" would be called sluice_content and so
    // on.
    const bool ours = IsTableOfSluice(word(at)) || (renamed && word(at) == "sluice");
    if ((trigger || renamed || referenced) && ours) {
      made_ = word(at);
    }
  }
}

int SqliteGuard::Refuse(std::string why) {
  refusal_ = std::move(why);
  return SQLITE_DENY;
}

int SqliteGuard::Ask(void* self, int action, const char* first, const char* second,
                     const char* schema, const char* trigger) {
  auto& guard = *static_cast<SqliteGuard*>(self);
  if (guard.open_ > 0 || action == SQLITE_READ || action == SQLITE_SELECT) {
    return SQLITE_OK;
  }
  const auto text = [](const char* from) { return std::string(from == nullptr ? "" : from); };
  // SQLite itself changes the numbers that it has given when a table goes, or gets another name.
  const bool own_change = guard.remakes_ && trigger == nullptr;
  const bool elsewhere = text(schema) == "temp" || text(schema) == kVacuum;
  if (!own_change && !elsewhere && LowerAscii(text(first)) == kNumbers &&
      (action == SQLITE_INSERT || action == SQLITE_UPDATE || action == SQLITE_DELETE)) {
    return guard.Refuse(
        "permission denied for table sqlite_sequence: it has the numbers of Sluice's rows, too");
  }
  guard.remakes_ = guard.remakes_ || action == SQLITE_DROP_TABLE || action == SQLITE_ALTER_TABLE;
  return guard.AskFor(action, text(first), text(second), text(schema));
}

int SqliteGuard::AskFor(int action, const std::string& first, const std::string& second,
                        const std::string& schema) {
  const auto changes = [&](const std::string& table) {
    if (schema == "temp") {  // the session's own, whatever its name
      return SQLITE_OK;
    }
    if (IsTableOfSluice(table) || IsTableOfSluice(first)) {
      return Refuse(fmt::format("permission denied for table {}: its rows are Sluice's own",
                                IsTableOfSluice(table) ? table : first));
    }
    if (std::find(kSchemas.begin(), kSchemas.end(), schema) != kSchemas.end()) {
      return Refuse(fmt::format("permission denied for schema {}", schema));
    }
    return SQLITE_OK;
  };
  if (!made_.empty()) {
    return Refuse(
        fmt::format("permission denied for table {}: it is Sluice's own; no trigger or foreign key "
                    "may name it, and no other table may take its name",
                    made_));
  }
  if (vacuum_ && action != SQLITE_ATTACH && action != SQLITE_FUNCTION) {
    return SQLITE_OK;  // copies every table, Sluice's own among them
  }
  switch (action) {
    case SQLITE_ATTACH:
      return vacuum_ && first.empty()
                 ? SQLITE_OK
                 : Refuse(
                       "permission denied: a session has the database that it has connected to, "
                       "and no other file");
    case SQLITE_DETACH:
      return Refuse("permission denied to detach a database");
    case SQLITE_FUNCTION: {
      // fts3_tokenizer calls whatever is at an address that its caller gives.
      const std::string function = LowerAscii(second);
      return function == "load_extension" || function == "fts3_tokenizer"
                 ? Refuse("permission denied to load an extension")
                 : SQLITE_OK;
    }
    case SQLITE_PRAGMA: {
      const std::string name = LowerAscii(first);
      const bool harmless =
          second.empty() || std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
      return harmless ? SQLITE_OK : Refuse(fmt::format("permission denied to set PRAGMA {}", name));
    }
    case SQLITE_CREATE_VTABLE:
      return changes(first);
    case SQLITE_INSERT:
    case SQLITE_UPDATE:
    case SQLITE_DELETE:
    case SQLITE_CREATE_TABLE:
    case SQLITE_CREATE_VIEW:
    case SQLITE_DROP_TABLE:
    case SQLITE_DROP_VIEW:
    case SQLITE_DROP_VTABLE:
      return changes(first);
    case SQLITE_CREATE_INDEX:
    case SQLITE_CREATE_TRIGGER:
    case SQLITE_DROP_INDEX:
    case SQLITE_DROP_TRIGGER:
    case SQLITE_ALTER_TABLE:  // these have their table second, as those of indexes and triggers do
      return changes(second);
    default:
      return SQLITE_OK;
  }
}

}  // namespace sluice::catalog
