#include <fmt/core.h>

#include <string>

#include "catalog/postgres/postgres_columns_internal.h"
#include "catalog/postgres/postgres_connection_internal.h"
#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/row_ranges_internal.h"
#include "catalog/sql/value_expression.h"

namespace sluice::catalog {
namespace {

// Which columns have a collatable type.
Result<std::vector<bool>> Collatable(PostgresConnection& connection, const PGresult& described) {
  std::string types;
  for (int i = 0; i < PQnfields(&described); ++i) {
    types +=
        fmt::format("{}({}, {}::pg_catalog.oid)", i == 0 ? "" : ", ", i, PQftype(&described, i));
  }
  ASSIGN_OR_RETURN(
      const PostgresResult answer,
      connection.Ask(fmt::format("SELECT coalesce(t.typcollation OPERATOR(pg_catalog.<>)"
                                 " 0::pg_catalog.oid, false)"
                                 " FROM (VALUES {}) AS v(i, o) LEFT JOIN pg_catalog.pg_type t"
                                 " ON t.oid OPERATOR(pg_catalog.=) v.o ORDER BY v.i",
                                 types)));
  std::vector<bool> collatable;
  collatable.reserve(static_cast<size_t>(PQntuples(answer.get())));
  for (int i = 0; i < PQntuples(answer.get()); ++i) {
    collatable.push_back(PostgresText(answer.get(), i, 0) == "t");
  }
  return collatable;
}

// `types`: of the columns that FindBuiltInType does not know, as rows of VALUES: number, type,
// modifier.
Status NameTypes(PostgresConnection& connection, std::string_view types, Schema* schema) {
  ASSIGN_OR_RETURN(
      const PostgresResult names,
      connection.Ask(fmt::format(
          "SELECT v.i, pg_catalog.format_type(v.t::pg_catalog.oid, v.m),"
          " pg_catalog.quote_ident(n.nspname) OPERATOR(pg_catalog.||) '.'"
          " OPERATOR(pg_catalog.||) pg_catalog.quote_ident(p.proname)"
          " FROM (VALUES {}) AS v(i, t, m)"
          " LEFT JOIN pg_catalog.pg_type AS y ON y.oid OPERATOR(pg_catalog.=) v.t::pg_catalog.oid"
          " LEFT JOIN pg_catalog.pg_proc AS p"
          " ON p.oid OPERATOR(pg_catalog.=) y.typsend::pg_catalog.oid"
          " LEFT JOIN pg_catalog.pg_namespace AS n"
          " ON n.oid OPERATOR(pg_catalog.=) p.pronamespace",
          types)));
  for (int row = 0; row < PQntuples(names.get()); ++row) {
    ColumnInfo& column = schema->columns[static_cast<size_t>(PostgresInteger(names.get(), row, 0))];
    column.database_type = PostgresText(names.get(), row, 1);
    column.wire->send = PostgresText(names.get(), row, 2);
  }
  return OkStatus();
}

}  // namespace

Result<Schema> DescribePostgresSelect(PostgresConnection& connection, std::string_view select) {
  if (select.find('\0') != std::string_view::npos) {
    return SyntaxError("a statement cannot hold a NULL byte");
  }
  ASSIGN_OR_RETURN(const PostgresResult described, connection.DescribeColumns(select));
  if (PQnparams(described.get()) > 0) {
    return InvalidArgument("the SELECT has parameters ($1) without values").SqlState("42P02");
  }
  const int count = PQnfields(described.get());
  if (count == 0) {
    return InvalidArgument("expected a SELECT: this statement returns no columns");
  }
  Schema schema;
  std::string unknown;
  for (int i = 0; i < count; ++i) {
    const Oid type = PQftype(described.get(), i);
    const int modifier = PQfmod(described.get(), i);
    ColumnInfo& column = schema.columns.emplace_back();
    column.name = PQfname(described.get(), i);
    column.type = TypeOfOid(type);
    column.wire = {type, static_cast<int16_t>(PQfsize(described.get(), i)), modifier, ""};
    if (const std::optional<BuiltInType> known = FindBuiltInType(type, modifier)) {
      column.database_type = known->name;
      column.wire->send = known->send;
    } else {
      unknown += fmt::format("{}({}, {}, {})", unknown.empty() ? "" : ", ", i, type, modifier);
    }
  }
  if (!unknown.empty()) {
    RETURN_IF_ERROR(NameTypes(connection, unknown, &schema));
  }
  for (ColumnInfo& column : schema.columns) {
    if (IsNumberShownAsText(column.database_type)) {
      column.type = DataType::kDouble;
    }
  }
  return schema;
}
std::string BinaryForm(std::string_view name, const ColumnInfo& column) {
  // A refcursor is sent by text's function, which takes no other type.
  const bool as_text = column.wire->send == "pg_catalog.textsend";
  return fmt::format(
      "pg_catalog.chr(92) OPERATOR(pg_catalog.||) 'x' OPERATOR(pg_catalog.||)"
      " pg_catalog.encode({}({}{}), 'hex')",
      column.wire->send, name, as_text ? "::pg_catalog.text" : "");
}

Status DescribeDeclarations(PostgresConnection& connection, std::string_view select,
                            Schema* schema) {
  ASSIGN_OR_RETURN(const PostgresResult described, connection.DescribeColumns(select));
  if (PQnfields(described.get()) != static_cast<int>(schema->columns.size())) {
    return Internal("the columns of the select changed while it was planned");
  }
  // A description names the base type of a domain, and its modifier; pg_typeof names the domain.
  // Reads nothing: the join has only the row with which it begins. With only the server's own
  // schema in the path, types of other schemas are qualified. (Operators were looked up before.)
  ASSIGN_OR_RETURN(const std::vector<bool> collatable, Collatable(connection, *described));
  std::string names;
  for (int i = 0; i < PQnfields(described.get()); ++i) {
    names += fmt::format(
        "{0}pg_catalog.format_type(pg_catalog.pg_typeof(c{1})::pg_catalog.oid,"
        " CASE WHEN pg_catalog.pg_typeof(c{1})::pg_catalog.oid OPERATOR(pg_catalog.=)"
        " {2}::pg_catalog.oid THEN {3} ELSE -1 END){4}",
        i == 0 ? "" : ", ", i, PQftype(described.get(), i), PQfmod(described.get(), i),
        collatable[static_cast<size_t>(i)]
            ? fmt::format(" OPERATOR(pg_catalog.||) CASE WHEN pg_catalog.pg_collation_for(c{0})"
                          " OPERATOR(pg_catalog.<>) '\"default\"' THEN ' COLLATE '"
                          " OPERATOR(pg_catalog.||) pg_catalog.pg_collation_for(c{0}) ELSE '' END",
                          i)
            : "");
  }
  RETURN_IF_ERROR(connection.Begin("BEGIN READ ONLY"));
  const Result<PostgresResult> types =
      connection.Ask(fmt::format("SELECT {} FROM (SELECT pg_catalog.set_config('search_path', "
                                 "'pg_catalog', true) OFFSET 0) AS path"
                                 " LEFT JOIN (\n{}\n) AS s({}) ON false",
                                 names, select, NumberedColumns(schema->columns.size())));
  connection.Rollback();
  RETURN_IF_ERROR(types.status());
  for (size_t i = 0; i < schema->columns.size(); ++i) {
    schema->columns[i].declaration = PostgresText(types->get(), 0, static_cast<int>(i));
  }
  return OkStatus();
}

Result<Schema> WithNearestName(PostgresConnection& connection, Result<Schema> described) {
  if (described.ok() || described.status().sqlstate() != "42P01") {
    return described;
  }
  // relation "tabel" does not exist
  const std::string& message = described.status().message();
  const size_t open = message.find('"');
  const size_t close = message.rfind('"');
  if (open == std::string::npos || close == open) {
    return described;
  }
  connection.Rollback();
  ASSIGN_OR_RETURN(
      const PostgresResult tables,
      connection.Ask("SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN"
                     " c.relname::pg_catalog.text ELSE"
                     " pg_catalog.concat(n.nspname, '.', c.relname) END"
                     " FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n"
                     " ON n.oid OPERATOR(pg_catalog.=) c.relnamespace"
                     " WHERE c.relkind OPERATOR(pg_catalog.=)"
                     " ANY ('{r,v,m,f,p}'::pg_catalog.\"char\"[]) AND n.nspname"
                     " OPERATOR(pg_catalog.<>) ALL"
                     " ('{pg_catalog,information_schema,pg_toast}'::pg_catalog.name[])"));
  std::vector<std::string> names;
  names.reserve(static_cast<size_t>(PQntuples(tables.get())));
  for (int i = 0; i < PQntuples(tables.get()); ++i) {
    names.emplace_back(PostgresText(tables.get(), i, 0));
  }
  const auto near = NearestName(message.substr(open + 1, close - open - 1), names);
  return near.has_value() ? described.status().Hint(fmt::format("did you mean '{}'?", *near))
                          : described.status();
}

}  // namespace sluice::catalog
