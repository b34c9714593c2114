#include <fmt/core.h>
#include <re2/re2.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_functions_internal.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

// The functions of pg_catalog that clients call when they browse a database.
namespace sluice::catalog {
namespace {

// Functions with the same result for every session and arguments.
struct Fixed {
  const char* name;
  const char* text;  // nullptr: NULL
  bool number = false;
};
constexpr std::array kFixed = {
    Fixed{"pg_type_is_visible", "1", true},
    Fixed{"pg_function_is_visible", "1", true},
    Fixed{"pg_opclass_is_visible", "1", true},
    Fixed{"pg_is_in_recovery", "0", true},
    Fixed{"pg_is_other_temp_schema", "0", true},
    Fixed{"pg_my_temp_schema", "0", true},
    Fixed{"pg_relation_is_publishable", "0", true},
    Fixed{"pg_relation_is_updatable", "28", true},
    Fixed{"pg_column_is_updatable", "1", true},
    Fixed{"has_table_privilege", "1", true},
    Fixed{"has_any_column_privilege", "1", true},
    Fixed{"has_column_privilege", "1", true},
    Fixed{"has_schema_privilege", "1", true},
    Fixed{"has_database_privilege", "1", true},
    Fixed{"has_function_privilege", "1", true},
    Fixed{"has_sequence_privilege", "1", true},
    Fixed{"has_tablespace_privilege", "1", true},
    Fixed{"pg_has_role", "1", true},
    Fixed{"row_security_active", "0", true},
    Fixed{"pg_encoding_to_char", "UTF8"},
    Fixed{"pg_client_encoding", "UTF8"},
    Fixed{"obj_description", nullptr},
    Fixed{"col_description", nullptr},
    Fixed{"shobj_description", nullptr},
    Fixed{"pg_get_serial_sequence", nullptr},
    Fixed{"pg_get_partkeydef", nullptr},
    Fixed{"pg_get_statisticsobjdef_columns", nullptr},
    Fixed{"pg_get_function_result", nullptr},
    Fixed{"pg_get_function_arguments", nullptr},
    Fixed{"pg_get_function_identity_arguments", nullptr},
    Fixed{"pg_get_triggerdef", nullptr},
    Fixed{"pg_get_ruledef", nullptr},
    Fixed{"pg_partition_ancestors", nullptr},
    Fixed{"pg_get_functiondef", nullptr},
    Fixed{"pg_tablespace_location", ""},
    Fixed{"pg_relation_size", nullptr},  // SQLite counts the pages of the file alone
    Fixed{"pg_table_size", nullptr},
    Fixed{"pg_indexes_size", nullptr},
    Fixed{"pg_total_relation_size", nullptr},
    Fixed{"pg_stat_get_numscans", "0", true},
    Fixed{"txid_current", "1", true},
    Fixed{"inet_server_addr", nullptr},
    Fixed{"inet_server_port", nullptr},
    Fixed{"inet_client_addr", nullptr},
    Fixed{"inet_client_port", nullptr},
};

// Functions answered from the database itself: a query of one cell, with the arguments as its
// parameters. `missing`: the error, followed by the first argument, if there is no row; otherwise
// the answer is NULL.
struct Asked {
  const char* name;
  const char* query;
  const char* missing = nullptr;
};
constexpr std::array kAsked = {
    Asked{"pg_get_indexdef",
          "SELECT body FROM pg_catalog.sluice_texts WHERE oid = ?1 AND kind = 'index' AND"
          " coalesce(?2, 0) = 0 UNION ALL SELECT attname FROM pg_catalog.pg_attribute"
          " WHERE attrelid = ?1 AND attnum = ?2"},
    Asked{"pg_get_constraintdef",
          "SELECT body FROM pg_catalog.sluice_texts WHERE oid = ?1 AND kind = 'constraint'"},
    Asked{"pg_get_viewdef",
          "SELECT body FROM pg_catalog.sluice_texts WHERE oid = ?1 AND kind = 'view'"},
    Asked{"pg_get_expr", "SELECT CAST(?1 AS TEXT)"},
    Asked{"pg_regclass_oid",
          "SELECT CAST(?1 AS INTEGER) WHERE ?1 GLOB '[0-9]*' UNION ALL SELECT oid FROM"
          " pg_catalog.pg_class WHERE CASE pg_table_schema(relnamespace) WHEN 'sluice' THEN"
          " 'sluice.' || relname ELSE relname END = replace(replace(replace(?1, '\"', ''),"
          " 'public.', ''), 'pg_catalog.', '') UNION ALL SELECT column2 FROM (VALUES"
          " ('pg_type', 1247), ('pg_attribute', 1249), ('pg_proc', 1255), ('pg_class', 1259),"
          " ('pg_database', 1262), ('pg_constraint', 2606), ('pg_namespace', 2615)) WHERE"
          " column1 = replace(?1, 'pg_catalog.', '') UNION ALL SELECT NULL WHERE ?1 IS NULL OR"
          " replace(?1, 'pg_catalog.', '') GLOB 'pg_*' LIMIT 1",
          "no such table: "},
    Asked{"to_regclass",
          "SELECT oid FROM pg_catalog.pg_class WHERE CASE pg_table_schema(relnamespace) WHEN"
          " 'sluice' THEN 'sluice.' || relname ELSE relname END = replace(replace(?1, '\"', ''),"
          " 'public.', '')"},
    Asked{"pg_regclass_name",
          "SELECT CASE pg_table_schema(relnamespace) WHEN 'sluice' THEN 'sluice.' ELSE '' END ||"
          " CASE WHEN relname GLOB '*[^a-z0-9_]*' THEN '\"' || relname || '\"' ELSE relname"
          " END FROM pg_catalog.pg_class WHERE oid = ?1 UNION ALL SELECT CASE ?1 WHEN 0 THEN '-'"
          " ELSE ?1 END LIMIT 1"},
    Asked{"pg_regtype_oid",
          "SELECT CAST(?1 AS INTEGER) WHERE ?1 GLOB '[0-9]*' UNION ALL SELECT oid FROM"
          " pg_catalog.pg_type WHERE replace(?1, 'pg_catalog.', '') IN (typname,"
          " format_type(oid, NULL)) UNION ALL SELECT NULL WHERE ?1 IS NULL LIMIT 1",
          "no such type: "},
    Asked{"pg_regtype_name",
          "SELECT format_type(CASE WHEN ?1 GLOB '[0-9]*' THEN ?1 ELSE (SELECT oid FROM"
          " pg_catalog.pg_type WHERE typname = ?1) END, NULL)"},
    // Columns of functions have their names.
    Asked{"pg_regproc_oid", "SELECT replace(?1, 'pg_catalog.', '')"},
    Asked{"pg_regproc_name", "SELECT ?1"},
    Asked{"pg_regnamespace_oid", "SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = ?1"},
    Asked{"pg_regnamespace_name", "SELECT nspname FROM pg_catalog.pg_namespace WHERE oid = ?1"},
    Asked{"pg_regrole_oid", "SELECT oid FROM pg_catalog.pg_roles WHERE rolname = ?1"},
    Asked{"pg_regrole_name", "SELECT rolname FROM pg_catalog.pg_roles WHERE oid = ?1"},
    Asked{"pg_database_size",
          "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"},
    Asked{"pg_size_pretty",
          "SELECT CASE WHEN ?1 < 10240 THEN ?1 || ' bytes' WHEN ?1 < 10485760"
          " THEN ((?1 + 512) / 1024) || ' kB' ELSE ((?1 + 524288) / 1048576) || ' MB'"
          " END"},
    Asked{"array_remove",
          "SELECT CASE WHEN ?1 IS NOT NULL THEN (SELECT coalesce(pg_array_of(value), '{}') FROM"
          " json_each(pg_array_json(?1)) WHERE value IS NOT ?2) END"},
    Asked{"current_schemas", "SELECT CASE WHEN ?1 THEN '{pg_catalog,public}' ELSE '{public}' END"},
    Asked{"current_setting", "SELECT setting FROM pg_catalog.pg_settings WHERE name = lower(?1)"},
    Asked{"set_config", "SELECT ?2"},
};

void Ask(sqlite3_context* context, int count, sqlite3_value** arguments) {
  const auto* asked = static_cast<const Asked*>(sqlite3_user_data(context));
  sqlite3_stmt* raw = nullptr;
  sqlite3* connection = sqlite3_context_db_handle(context);
  if (sqlite3_prepare_v2(connection, asked->query, -1, &raw, nullptr) != SQLITE_OK) {
    sqlite3_result_null(context);  // the statement has not named the relation
    return;
  }
  const SqliteStatement query(raw);
  for (int i = 0; i < std::min(count, sqlite3_bind_parameter_count(raw)); ++i) {
    sqlite3_bind_value(raw, i + 1, arguments[i]);
  }
  if (sqlite3_step(raw) == SQLITE_ROW) {
    sqlite3_result_value(context, sqlite3_column_value(raw, 0));
  } else if (asked->missing != nullptr && count > 0) {
    const std::string error = fmt::format("{}{}", asked->missing, TextOf(arguments[0]));
    sqlite3_result_error(context, error.data(), static_cast<int>(error.size()));
  } else {
    sqlite3_result_null(context);
  }
}

void TableSchema(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  Answer(context, sqlite3_value_int64(arguments[0]) == kSluiceOid ? "sluice" : "public");
}

// Schema sluice is not in the search path. By number: asking pg_class for each row takes long.
void TableIsVisible(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const int64_t oid = sqlite3_value_int64(arguments[0]) % kRowidKeyOids;
  sqlite3_result_int(context, oid < kSluiceOids ? 1 : 0);
}

struct TypeName {
  int64_t oid;
  const char* name;
};
constexpr std::array kTypeNames = {
    TypeName{16, "boolean"},
    TypeName{17, "bytea"},
    TypeName{18, "\"char\""},
    TypeName{19, "name"},
    TypeName{20, "bigint"},
    TypeName{21, "smallint"},
    TypeName{22, "int2vector"},
    TypeName{23, "integer"},
    TypeName{24, "regproc"},
    TypeName{25, "text"},
    TypeName{26, "oid"},
    TypeName{30, "oidvector"},
    TypeName{114, "json"},
    TypeName{700, "real"},
    TypeName{701, "double precision"},
    TypeName{705, "unknown"},
    TypeName{1042, "character"},
    TypeName{1043, "character varying"},
    TypeName{1082, "date"},
    TypeName{1083, "time without time zone"},
    TypeName{1114, "timestamp without time zone"},
    TypeName{1184, "timestamp with time zone"},
    TypeName{1186, "interval"},
    TypeName{1700, "numeric"},
    TypeName{2950, "uuid"},
    TypeName{3802, "jsonb"},
    TypeName{1009, "text[]"},
    TypeName{1016, "bigint[]"},
};

void FormatType(sqlite3_context* context, int count, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0])) {
    sqlite3_result_null(context);
    return;
  }
  const int64_t oid = sqlite3_value_int64(arguments[0]);
  const auto named = std::find_if(kTypeNames.begin(), kTypeNames.end(),
                                  [oid](const TypeName& type) { return type.oid == oid; });
  std::string name = named == kTypeNames.end() ? "???" : named->name;
  constexpr int kHeader = 4;
  constexpr int kScaleBits = 16;
  const int modifier =
      count > 1 && !IsNullValue(arguments[1]) ? sqlite3_value_int(arguments[1]) : -1;
  if (modifier >= kHeader && oid == 1700) {
    name += fmt::format("({},{})", (modifier - kHeader) >> kScaleBits,
                        (modifier - kHeader) & ((1 << kScaleBits) - 1));
  } else if (modifier >= kHeader && (oid == 1043 || oid == 1042)) {
    name += fmt::format("({})", modifier - kHeader);
  }
  Answer(context, name);
}

// parse_ident('schema.name'): the parts, without their quotes.
void ParseIdent(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  constexpr size_t kMostOfNames = size_t{64} << 10;  // reading one takes thirty times its bytes
  if (TextOf(arguments[0]).size() > kMostOfNames) {
    sqlite3_result_error(context, "name is too long", -1);
    return;
  }
  const Result<TableName> name = ParseTableName(TextOf(arguments[0]), Dialect::kPostgres);
  if (IsNullValue(arguments[0]) || !name.ok()) {
    sqlite3_result_null(context);
    return;
  }
  Answer(context,
         fmt::format("{{{}{}{}}}", name->schema.empty() ? "" : QuotedArrayElement(name->schema),
                     name->schema.empty() ? "" : ",", QuotedArrayElement(name->name)));
}

void QuoteIdent(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  const std::string_view name = TextOf(arguments[0]);
  const bool plain =
      !name.empty() &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") == std::string_view::npos &&
      (name[0] < '0' || name[0] > '9');
  Answer(context, plain ? std::string(name) : QuoteName(name));
}

void FreePattern(void* compiled) {
  std::default_delete<re2::RE2>()(static_cast<re2::RE2*>(compiled));
}

bool IsPlain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// ^name and ^(name)$, which clients match with every row; nullopt: another pattern.
std::optional<bool> MatchesName(std::string_view pattern, std::string_view text) {
  if (pattern.starts_with("^(") && pattern.ends_with(")$")) {
    const std::string_view name = pattern.substr(2, pattern.size() - 4);
    return IsPlain(name) ? std::optional(text == name) : std::nullopt;
  }
  return pattern.starts_with('^') && IsPlain(pattern.substr(1))
             ? std::optional(text.starts_with(pattern.substr(1)))
             : std::nullopt;
}

// text REGEXP pattern
void Regexp(sqlite3_context* context, int /*count*/, sqlite3_value** arguments) {
  if (IsNullValue(arguments[0]) || IsNullValue(arguments[1])) {
    sqlite3_result_null(context);
    return;
  }
  if (const auto matches = MatchesName(TextOf(arguments[0]), TextOf(arguments[1]))) {
    sqlite3_result_int(context, *matches ? 1 : 0);
    return;
  }
  constexpr size_t kMostOfPattern = size_t{256} << 10;  // reading one takes thirty times its bytes
  if (TextOf(arguments[0]).size() > kMostOfPattern) {
    sqlite3_result_error(context, "regular expression is too long", -1);
    return;
  }
  auto* compiled = static_cast<re2::RE2*>(sqlite3_get_auxdata(context, 0));
  std::unique_ptr<re2::RE2> made;
  if (compiled == nullptr) {
    made = std::make_unique<re2::RE2>(TextOf(arguments[0]), re2::RE2::Quiet);
    compiled = made.get();
  }
  if (!compiled->ok()) {
    sqlite3_result_error(context, "invalid regular expression", -1);
    return;
  }
  // RE2's time is at most the product of both; nothing ends it meanwhile.
  constexpr double kMostSteps = 2e9;
  const std::string_view text = TextOf(arguments[1]);
  if (static_cast<double>(text.size()) * compiled->ProgramSize() > kMostSteps) {
    sqlite3_result_error(context, "regular expression is too large for a text as long as this", -1);
    return;
  }
  sqlite3_result_int(context, re2::RE2::PartialMatch(text, *compiled) ? 1 : 0);
  if (made != nullptr) {
    sqlite3_set_auxdata(context, 0, made.release(), FreePattern);
  }
}

void FixedText(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  const auto* fixed = static_cast<const Fixed*>(sqlite3_user_data(context));
  if (fixed->text == nullptr) {
    sqlite3_result_null(context);
  } else if (fixed->number) {
    sqlite3_result_int(context, std::atoi(fixed->text));
  } else {
    Answer(context, fixed->text);
  }
}

void OwnText(sqlite3_context* context, int /*count*/, sqlite3_value** /*arguments*/) {
  Answer(context, *static_cast<const std::string*>(sqlite3_user_data(context)));
}

void FreeText(void* text) {
  std::default_delete<std::string>()(static_cast<std::string*>(text));
}

}  // namespace

void FunctionRegistrar::AddText(const char* name, const std::string& text, int arguments) {
  Note(sqlite3_create_function_v2(connection_.handle(), name, arguments, SQLITE_UTF8,
                                  std::make_unique<std::string>(text).release(), OwnText, nullptr,
                                  nullptr, FreeText));
}

Status AddPgFunctions(SqliteConnection& connection, const EmbeddedSession::Options& options) {
  FunctionRegistrar add(connection);
  for (const Fixed& fixed : kFixed) {
    add.Add(fixed.name, -1, FixedText, &fixed);
  }
  for (const Asked& asked : kAsked) {
    add.Add(asked.name, -1, Ask, &asked, 0);
  }
  AddArrayFunctions(add);
  add.Add("pg_table_schema", 1, TableSchema);
  add.Add("pg_table_is_visible", 1, TableIsVisible);
  add.Add("format_type", -1, FormatType);
  add.Add("parse_ident", 1, ParseIdent);
  add.Add("quote_ident", 1, QuoteIdent);
  add.Add("regexp", 2, Regexp);
  for (const char* name : {"pg_current_user", "pg_session_user", "pg_current_role", "pg_user"}) {
    add.AddText(name, options.user);
  }
  add.AddText("pg_get_userbyid", options.user, 1);  // the owner of everything
  add.AddText("pg_current_catalog", options.database);
  add.AddText("current_database", options.database);
  add.AddText("pg_current_schema", "public");
  add.AddText("current_schema", "public");
  add.AddText("version", options.version);
  add.AddText("pg_backend_pid", fmt::format("{}", getpid()));
  return add.status();
}

}  // namespace sluice::catalog
