#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

namespace sluice::catalog {
namespace {

// A name is a text, and not what SQLite's NUMERIC affinity would make of "1e5".
std::string StoredType(std::string_view type) {
  return type == "name"                             ? "name text"
         : type.find('[') != std::string_view::npos ? QuoteName(type)
                                                    : std::string(type);
}

// What a column has that no row says anything of: as clients expect it to be NOT NULL.
std::string_view UsualValue(std::string_view type) {
  if (type == "boolean" || type == "oid" || type.starts_with("int") || type == "smallint" ||
      type == "integer" || type == "bigint" || type == "regproc" || type == "real") {
    return type == "int2vector" ? "''" : "0";
  }
  return type == "name" || type == "\"char\"" ? "''" : "NULL";
}

std::string MakeTable(const PgRelation& relation) {
  std::string columns;
  std::string_view rest = relation.columns;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(", "), rest.size());
    const std::string_view column = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 2, rest.size()));
    const size_t blank = column.find(' ');
    const std::string_view type = column.substr(blank + 1);
    const std::string_view name = column.substr(0, blank);
    columns += fmt::format("{}{} {} DEFAULT {}", columns.empty() ? "" : ", ",
                           name.starts_with('"') ? std::string(name) : QuoteName(name),
                           StoredType(type), UsualValue(type));
  }
  return fmt::format("CREATE TABLE {}.{} ({})", relation.schema, QuoteName(relation.name), columns);
}

// The relations that rows are put into whenever any is asked for.
constexpr std::array<std::string_view, 19> kFilled = {
    "pg_namespace", "pg_class",      "pg_attribute", "pg_type",    "pg_index",
    "pg_database",  "pg_roles",      "pg_am",        "pg_attrdef", "pg_constraint",
    "pg_settings",  "pg_tables",     "pg_views",     "pg_indexes", "pg_user",
    "pg_authid",    "pg_tablespace", "pg_collation", "pg_language"};
constexpr std::array<std::string_view, 6> kInformation = {
    "information_schema.tables",           "information_schema.columns",
    "information_schema.schemata",         "information_schema.views",
    "information_schema.key_column_usage", "information_schema.table_constraints"};

}  // namespace

Status SqlitePgCatalog::Attach() {
  RETURN_IF_ERROR(connection_.Run("ATTACH ':memory:' AS pg_catalog"));
  RETURN_IF_ERROR(connection_.Run("ATTACH ':memory:' AS information_schema"));
  return AddPgFunctions(connection_, options_);
}

Result<bool> SqlitePgCatalog::Has(const PgRelation& relation) {
  ASSIGN_OR_RETURN(const int64_t there,
                   connection_.QueryInteger(
                       fmt::format("SELECT count(*) FROM {}.sqlite_schema WHERE name = {}",
                                   relation.schema, QuoteText(relation.name, Dialect::kSqlite))));
  return there > 0;
}

Status SqlitePgCatalog::Make(const PgRelation& relation) {
  ASSIGN_OR_RETURN(const bool there, Has(relation));
  return there ? OkStatus() : connection_.Run(MakeTable(relation));
}

Status SqlitePgCatalog::Provide(const std::vector<std::string>& relations) {
  ASSIGN_OR_RETURN(const int64_t version, connection_.QueryInteger("PRAGMA main.schema_version"));
  // Kept where the rows are, so that a ROLLBACK takes both back.
  RETURN_IF_ERROR(connection_.Run("CREATE TABLE IF NOT EXISTS pg_catalog.sluice_state (version)"));
  ASSIGN_OR_RETURN(const SqlRows known,
                   connection_.Query("SELECT version FROM pg_catalog.sluice_state", {}));
  if (known.empty() || IntegerCell(known[0][0]) != version) {
    RETURN_IF_ERROR(connection_.Run("SAVEPOINT sluice_catalog"));
    Status filled = FillAll();
    if (filled.ok()) {
      filled = connection_.Run("DELETE FROM pg_catalog.sluice_state");
    }
    if (filled.ok()) {
      filled = Insert("sluice_state", "version", {SqlParameter(version)});
    }
    if (!filled.ok()) {
      RETURN_IF_ERROR(connection_.Run("ROLLBACK TO sluice_catalog"));
    }
    RETURN_IF_ERROR(connection_.Run("RELEASE sluice_catalog"));
    RETURN_IF_ERROR(filled);
  }
  for (const std::string& name : relations) {
    if (const PgRelation* relation = FindPgRelation(name)) {
      RETURN_IF_ERROR(Make(*relation));
    }
  }
  return OkStatus();
}

Status SqlitePgCatalog::Insert(std::string_view relation, std::string_view columns,
                               const std::vector<SqlParameter>& values) {
  SqliteStatement& insert = inserts_[fmt::format("{} {}", relation, columns)];
  if (insert == nullptr) {
    std::string places;
    for (size_t i = 0; i < values.size(); ++i) {
      places += i == 0 ? "?" : ", ?";
    }
    ASSIGN_OR_RETURN(insert,
                     connection_.Prepare(fmt::format("INSERT INTO pg_catalog.{} ({}) VALUES ({})",
                                                     relation, columns, places)));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const int at = static_cast<int>(i) + 1;
    if (const auto* integer = std::get_if<int64_t>(&values[i])) {
      sqlite3_bind_int64(insert.get(), at, *integer);
    } else if (const auto* number = std::get_if<double>(&values[i])) {
      sqlite3_bind_double(insert.get(), at, *number);
    } else {
      const auto& text = std::get<std::string>(values[i]);
      sqlite3_bind_text64(insert.get(), at, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
    }
  }
  const bool done = sqlite3_step(insert.get()) == SQLITE_DONE;
  const Status status = done ? OkStatus() : connection_.LastError("");
  sqlite3_reset(insert.get());
  return status;
}

Status SqlitePgCatalog::FillAll() {
  next_oid_ = 2'000'000'000;
  for (const auto& names : {std::span<const std::string_view>(kFilled),
                            std::span<const std::string_view>(kInformation)}) {
    for (const std::string_view name : names) {
      const PgRelation* relation = FindPgRelation(name);
      RETURN_IF_ERROR(Make(*relation));
      RETURN_IF_ERROR(connection_.Run(
          fmt::format("DELETE FROM {}.{}", relation->schema, QuoteName(relation->name))));
    }
  }
  RETURN_IF_ERROR(connection_.Run(
      "CREATE TABLE IF NOT EXISTS pg_catalog.sluice_texts (oid INTEGER, kind TEXT, body TEXT)"));
  RETURN_IF_ERROR(connection_.Run("DELETE FROM pg_catalog.sluice_texts"));
  for (const std::string_view column :
       {"pg_class (oid)", "pg_attribute (attrelid)", "pg_index (indrelid)", "pg_type (oid)",
        "sluice_texts (oid)", "pg_attrdef (adrelid)"}) {
    RETURN_IF_ERROR(
        connection_.Run(fmt::format("CREATE INDEX IF NOT EXISTS pg_catalog.sluice_by_{} ON {}",
                                    column.substr(0, column.find(' ')), column)));
  }
  RETURN_IF_ERROR(FillFixed());
  RETURN_IF_ERROR(FillTables());
  return FillInformationSchema();
}

}  // namespace sluice::catalog
