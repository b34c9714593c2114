#include <fmt/core.h>

#include <string>
#include <string_view>

#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

// information_schema, which is derived from pg_catalog's tables.
namespace sluice::catalog {
namespace {

// A key's rule in words, from the letter in that column of pg_constraint.
std::string RuleWords(std::string_view column) {
  return fmt::format(
      "CASE k.{} WHEN 'c' THEN 'CASCADE' WHEN 'r' THEN 'RESTRICT' WHEN 'n' THEN 'SET NULL' WHEN 'd'"
      " THEN 'SET DEFAULT' ELSE 'NO ACTION' END",
      column);
}

}  // namespace

Status SqlitePgCatalog::FillInformationSchema() {
  const std::string database = QuoteText(options_.database, Dialect::kSqlite);
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.schemata (catalog_name, schema_name, schema_owner) SELECT {},"
      " nspname, pg_user() FROM pg_catalog.pg_namespace",
      database)));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.tables (table_catalog, table_schema, table_name, table_type,"
      " is_insertable_into, is_typed) SELECT {}, pg_table_schema(relnamespace), relname, CASE"
      " relkind WHEN 'v' THEN 'VIEW' ELSE 'BASE TABLE' END, CASE relkind WHEN 'v' THEN 'NO' ELSE "
      "'YES' END, 'NO' FROM"
      " pg_catalog.pg_class WHERE relkind IN ('r', 'v')",
      database)));
  RETURN_IF_ERROR(connection_.Run(
      fmt::format("INSERT INTO information_schema.views (table_catalog, table_schema, table_name,"
                  " view_definition, check_option, is_updatable) SELECT {},"
                  " pg_table_schema(relnamespace), relname,"
                  " pg_get_viewdef(oid), 'NONE', 'NO' FROM pg_catalog.pg_class WHERE relkind = 'v'",
                  database)));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.columns (table_catalog, table_schema, table_name,"
      " column_name, ordinal_position, column_default, is_nullable, data_type,"
      " character_maximum_length, numeric_precision, numeric_precision_radix, udt_catalog,"
      " udt_schema, udt_name, is_identity, is_generated, is_updatable) SELECT {0},"
      " pg_table_schema(c.relnamespace),"
      " c.relname, a.attname, a.attnum, d.adbin, CASE a.attnotnull WHEN 1 THEN 'NO' ELSE 'YES' END,"
      " format_type(a.atttypid, NULL), CASE WHEN a.atttypid = 1043 AND a.atttypmod > 4 THEN"
      " a.atttypmod - 4 END, CASE a.atttypid WHEN 20 THEN 64 WHEN 701 THEN 53 END, CASE a.atttypid"
      " WHEN 20 THEN 2 WHEN 701 THEN 2 WHEN 1700 THEN 10 END, {0}, 'pg_catalog', t.typname, 'NO',"
      " CASE a.attgenerated WHEN '' THEN 'NEVER' ELSE 'ALWAYS' END, 'YES' FROM"
      " pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid JOIN"
      " pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_attrdef d ON"
      " d.adrelid = c.oid AND d.adnum = a.attnum WHERE c.relkind IN ('r', 'v')",
      database)));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.table_constraints (constraint_catalog, constraint_schema,"
      " constraint_name, table_catalog, table_schema, table_name, constraint_type, is_deferrable,"
      " initially_deferred, enforced) SELECT {0}, pg_table_schema(k.connamespace), k.conname,"
      " {0}, pg_table_schema(c.relnamespace), c.relname,"
      " CASE k.contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' ELSE 'FOREIGN KEY' END,"
      " 'NO', 'NO', 'YES' FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON"
      " c.oid = k.conrelid",
      database)));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.key_column_usage (constraint_catalog, constraint_schema,"
      " constraint_name, table_catalog, table_schema, table_name, column_name, ordinal_position)"
      " SELECT {0}, pg_table_schema(k.connamespace), k.conname, {0},"
      " pg_table_schema(c.relnamespace), c.relname, a.attname, row_number() OVER"
      " (PARTITION BY k.oid ORDER BY instr(k.conkey, a.attnum)) FROM pg_catalog.pg_constraint k"
      " JOIN pg_catalog.pg_class c ON c.oid = k.conrelid JOIN pg_catalog.pg_attribute a ON"
      " a.attrelid = c.oid AND pg_any_equals(a.attnum, k.conkey)",
      database)));
  RETURN_IF_ERROR(connection_.Run(fmt::format(
      "INSERT INTO information_schema.constraint_column_usage (table_catalog, table_schema,"
      " table_name, column_name, constraint_catalog, constraint_schema, constraint_name)"
      " SELECT {0}, pg_table_schema(c.relnamespace), c.relname, a.attname, {0},"
      " pg_table_schema(k.connamespace), k.conname FROM"
      " pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = CASE k.contype WHEN 'f'"
      " THEN k.confrelid ELSE k.conrelid END JOIN pg_catalog.pg_attribute a ON"
      " a.attrelid = c.oid AND pg_any_equals(a.attnum, CASE k.contype WHEN 'f' THEN k.confkey ELSE"
      " k.conkey END)",
      database)));
  return connection_.Run(fmt::format(
      "INSERT INTO information_schema.referential_constraints (constraint_catalog,"
      " constraint_schema, constraint_name, unique_constraint_catalog, unique_constraint_schema,"
      " unique_constraint_name, match_option, update_rule, delete_rule) SELECT {0},"
      " pg_table_schema(k.connamespace), k.conname, {0}, pg_table_schema(u.connamespace),"
      " u.conname, 'NONE', {1}, {2} FROM pg_catalog.pg_constraint k LEFT"
      " JOIN pg_catalog.pg_constraint u ON u.conindid = k.conindid AND u.contype IN ('p', 'u')"
      " WHERE k.contype = 'f'",
      database, RuleWords("confupdtype"), RuleWords("confdeltype")));
}

}  // namespace sluice::catalog
