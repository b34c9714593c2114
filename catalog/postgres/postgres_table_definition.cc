#include "catalog/postgres/postgres_table_definition_internal.h"

#include <fmt/core.h>
#include <libpq-fe.h>

#include <optional>
#include <string_view>
#include <utility>

#include "catalog/postgres/postgres_types_internal.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/sqlstate.h"
#include "catalog/sql/types_of_others.h"

namespace sluice::catalog {
namespace {

// Who made the types that the query `types` finds (MakersOfTypes), unless this role trusts them.
Result<std::optional<std::string>> FindMaker(PostgresConnection& connection, std::string_view types,
                                             const std::string& parameter) {
  ASSIGN_OR_RETURN(const PostgresResult maker,
                   connection.Ask(MakersOfTypes(types) + " LIMIT 1", {parameter}));
  return PQntuples(maker.get()) == 0 ? std::optional<std::string>()
                                     : std::string(PostgresText(maker.get(), 0, 0));
}

// A declaration as DescribeDeclarations makes it: the type, and the collation or "".
std::pair<std::string, std::string> SplitCollation(const std::string& declaration) {
  for (const SqlToken& token : TokenizeSql(declaration, Dialect::kPostgres)) {
    if (token.kind == SqlToken::Kind::kWord && token.begin > 0 &&
        std::string_view(declaration).substr(token.begin, token.end - token.begin) == "COLLATE") {
      return {declaration.substr(0, token.begin - 1), declaration.substr(token.end + 1)};
    }
  }
  return {declaration, ""};
}

// The type of that name, or of what another role's domain of that name is of; nullopt: there is
// none that this role may write.
Result<std::optional<std::string>> FindType(PostgresConnection& connection, const std::string& name,
                                            const ColumnInfo& column) {
  // to_regtype accepts only the name of a type, with its modifier, so the text cannot contain
  // anything else.
  ASSIGN_OR_RETURN(const PostgresResult known,
                   connection.Ask("SELECT pg_catalog.to_regtype($1)::pg_catalog.oid", {name}));
  if (PQgetisnull(known.get(), 0, 0) != 0) {
    return std::optional<std::string>();
  }
  std::string oid(PostgresText(known.get(), 0, 0));
  constexpr int64_t kFirstOfUsers = 16'384;
  const int64_t number = PostgresInteger(known.get(), 0, 0);
  if (!column.declaration.has_value() && TypeOfOid(static_cast<Oid>(number)) != column.type) {
    return std::optional<std::string>();
  }
  std::optional<std::string> type = name;
  for (const bool users = number >= kFirstOfUsers; users;) {
    ASSIGN_OR_RETURN(const auto maker, FindMaker(connection, "SELECT $1::pg_catalog.oid", oid));
    if (!maker.has_value()) {
      break;
    }
    ASSIGN_OR_RETURN(
        const PostgresResult base,
        connection.Ask("SELECT typbasetype, pg_catalog.format_type(typbasetype, typtypmod)"
                       " FROM pg_catalog.pg_type WHERE oid OPERATOR(pg_catalog.=)"
                       " $1::pg_catalog.oid AND typtype OPERATOR(pg_catalog.=) 'd'",
                       {oid}));
    if (PQntuples(base.get()) == 0) {
      return std::optional<std::string>();
    }
    oid = PostgresText(base.get(), 0, 0);
    type = PostgresText(base.get(), 0, 1);
  }
  return type;
}

}  // namespace

Status MakePostgresTable(PostgresConnection& connection, const std::string& quoted_table,
                         const Schema& schema) {
  std::string columns;
  for (const ColumnInfo& column : schema.columns) {
    std::string type(PostgresTypeName(column.type));
    const auto [wanted, collation] =
        SplitCollation(column.declaration.value_or(column.database_type));
    if (!wanted.empty() && wanted != type) {
      ASSIGN_OR_RETURN(std::optional<std::string> found, FindType(connection, wanted, column));
      type = std::move(found).value_or(type);
    }
    if (!collation.empty()) {  // likewise, to_regcollation accepts only a name
      ASSIGN_OR_RETURN(
          const PostgresResult known,
          connection.Ask("SELECT pg_catalog.to_regcollation($1)::pg_catalog.oid", {collation}));
      type += PQgetisnull(known.get(), 0, 0) == 0 ? " COLLATE " + collation : "";
    }
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", QuoteName(column.name), type);
  }
  RETURN_IF_ERROR(connection.Run(fmt::format("CREATE TABLE {} ({})", quoted_table, columns)));
  // By the names above another role may have made other types meanwhile.
  ASSIGN_OR_RETURN(
      const PostgresResult table,
      connection.Ask("SELECT pg_catalog.to_regclass($1)::pg_catalog.oid", {quoted_table}));
  ASSIGN_OR_RETURN(
      const auto maker,
      FindMaker(connection,
                "SELECT atttypid FROM pg_catalog.pg_attribute WHERE attrelid"
                " OPERATOR(pg_catalog.=) $1::pg_catalog.oid AND attnum OPERATOR(pg_catalog.>) 0",
                std::string(PostgresText(table.get(), 0, 0))));
  return maker.has_value()
             ? DatabaseError(
                   "40001", fmt::format("role {} has changed a type of the rows meanwhile", *maker))
                   .Hint("run the statement again")
             : OkStatus();
}

}  // namespace sluice::catalog
