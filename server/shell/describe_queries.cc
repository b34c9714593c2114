#include "server/shell/describe_queries.h"

#include <fmt/core.h>

#include <utility>

#include "parser/parser.h"
#include "server/load/load_target.h"

namespace sluice::server {
namespace {

// A name's schema ("": none) and the name itself, without quotes.
std::pair<std::string, std::string> NameParts(std::string_view name) {
  const Result<parser::Name> parsed = parser::ParseName(name);
  if (!parsed.ok() || parsed->parts.empty()) {
    return {"", std::string(name)};
  }
  const std::vector<std::string>& parts = parsed->parts;
  return {parts.size() > 1 ? parts[parts.size() - 2] : "", parts.back()};
}

// "cens*" as a LIKE pattern, with | as its escape character.
std::string LikePattern(std::string_view pattern) {
  std::string like;
  for (const char c : pattern) {
    if (c == '*' || c == '?') {
      like += c == '*' ? '%' : '_';
    } else {
      if (c == '%' || c == '_' || c == '|') {
        like += '|';
      }
      like += c;
    }
  }
  return SqlLiteral(like) + " ESCAPE '|'";
}

// Conditions on the name and, if the pattern has one, the schema.
std::string Matching(std::string_view pattern, std::string_view name, std::string_view schema,
                     std::string_view like) {
  const size_t dot = pattern.rfind('.');
  std::string condition =
      fmt::format(" AND {} {} {}", name, like, LikePattern(pattern.substr(dot + 1)));
  if (dot != std::string_view::npos) {
    condition += fmt::format(" AND {} {} {}", schema, like, LikePattern(pattern.substr(0, dot)));
  }
  return condition;
}

// Arguments for SQLite's table functions.
std::string PragmaArguments(std::string_view name) {
  const auto [schema, table] = NameParts(name);
  return SqlLiteral(table) + (schema.empty() ? "" : ", " + SqlLiteral(schema));
}

constexpr std::string_view kOwnSchemas =
    "('pg_catalog', 'information_schema', 'sluice', 'sluice_stage')";

}  // namespace

std::string ListTables(SqlDialect dialect, std::string_view pattern, bool only_tables) {
  if (dialect == SqlDialect::kSqlite) {
    return fmt::format(
        "SELECT schema, name, type AS kind, ncol AS \"columns\" FROM pragma_table_list"
        " WHERE type IN ({}) AND name NOT LIKE 'sqlite|_%' ESCAPE '|'{} ORDER BY 1, 2",
        only_tables ? "'table', 'virtual'" : "'table', 'view', 'virtual'",
        pattern.empty() ? " AND name NOT LIKE 'sluice|_%' ESCAPE '|'"
                        : Matching(pattern, "name", "schema", "LIKE"));
  }
  return fmt::format(
      "SELECT n.nspname AS schema, c.relname AS name, CASE c.relkind WHEN 'r' THEN 'table'"
      " WHEN 'p' THEN 'partitioned table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view'"
      " ELSE 'foreign table' END AS kind, pg_catalog.pg_get_userbyid(c.relowner) AS owner"
      " FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
      " WHERE c.relkind IN ({}){} ORDER BY 1, 2",
      only_tables ? "'r', 'p', 'f'" : "'r', 'p', 'f', 'v', 'm'",
      pattern.empty()
          ? fmt::format(" AND pg_catalog.pg_table_is_visible(c.oid) AND n.nspname NOT IN {}",
                        kOwnSchemas)
          : Matching(pattern, "c.relname", "n.nspname", "ILIKE"));
}

std::string FindTable(SqlDialect dialect, std::string_view name) {
  if (dialect == SqlDialect::kPostgres) {
    return fmt::format(
        "SELECT relname FROM pg_catalog.pg_class WHERE oid OPERATOR(pg_catalog.=)"
        " pg_catalog.to_regclass({})::pg_catalog.oid"
        " AND relkind IN ('r', 'p', 'f', 'v', 'm')",
        SqlLiteral(name));
  }
  const auto [schema, table] = NameParts(name);
  return fmt::format(
      "SELECT name FROM pragma_table_list WHERE lower(name) = lower({}){}", SqlLiteral(table),
      schema.empty() ? "" : fmt::format(" AND lower(schema) = lower({})", SqlLiteral(schema)));
}

std::string ListColumns(SqlDialect dialect, std::string_view name) {
  if (dialect == SqlDialect::kSqlite) {
    return fmt::format(
        "SELECT name, type, CASE WHEN \"notnull\" THEN 'not null' ELSE '' END AS \"null\","
        " dflt_value AS \"default\", CASE WHEN pk > 0 THEN 'primary' ELSE '' END AS key"
        " FROM pragma_table_info({})",
        PragmaArguments(name));
  }
  return fmt::format(
      "SELECT a.attname AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,"
      " CASE WHEN a.attnotnull THEN 'not null' ELSE '' END AS \"null\","
      " pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS \"default\","
      " coalesce((SELECT CASE WHEN i.indisprimary THEN 'primary' ELSE 'unique' END"
      "  FROM pg_catalog.pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND"
      "  a.attnum = ANY (i.indkey) ORDER BY i.indisprimary DESC LIMIT 1), '') AS key"
      " FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d"
      " ON d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid"
      " OPERATOR(pg_catalog.=) pg_catalog.to_regclass({})::pg_catalog.oid AND a.attnum > 0 AND NOT "
      "a.attisdropped ORDER BY a.attnum",
      SqlLiteral(name));
}

std::string ListIndexes(SqlDialect dialect, std::string_view name) {
  if (dialect == SqlDialect::kSqlite) {
    return fmt::format(
        "SELECT l.name AS \"index\", group_concat(i.name, ', ') AS \"columns\","
        " CASE WHEN l.\"unique\" THEN 'unique' ELSE '' END AS kind FROM pragma_index_list({}) l,"
        " pragma_index_info(l.name) i GROUP BY l.seq, l.name, l.\"unique\"",
        PragmaArguments(name));
  }
  return fmt::format(
      "SELECT c.relname AS \"index\", pg_catalog.pg_get_indexdef(i.indexrelid) AS definition"
      " FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid"
      " WHERE i.indrelid OPERATOR(pg_catalog.=) pg_catalog.to_regclass({})::pg_catalog.oid"
      " ORDER BY 1",
      SqlLiteral(name));
}

std::string TableNames(SqlDialect dialect) {
  if (dialect == SqlDialect::kSqlite) {
    return "SELECT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite|_%' ESCAPE '|'"
           " AND name NOT LIKE 'sluice|_%' ESCAPE '|'";
  }
  return fmt::format(
      "SELECT c.relname FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n"
      " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND"
      " pg_catalog.pg_table_is_visible(c.oid) AND n.nspname NOT IN {}",
      kOwnSchemas);
}

std::string ColumnNames(SqlDialect dialect) {
  if (dialect == SqlDialect::kSqlite) {
    return "SELECT t.name, c.name FROM pragma_table_list t, pragma_table_info(t.name, t.schema) c"
           " WHERE t.name NOT LIKE 'sqlite|_%' ESCAPE '|'"
           " AND t.name NOT LIKE 'sluice|_%' ESCAPE '|'";
  }
  return fmt::format(
      "SELECT c.relname, a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c"
      " ON c.oid = a.attrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
      " WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND"
      " pg_catalog.pg_table_is_visible(c.oid) AND n.nspname NOT IN {} LIMIT 20000",
      kOwnSchemas);
}

}  // namespace sluice::server
