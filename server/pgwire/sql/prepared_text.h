#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/sql/bound_text.h"

// SQL statements for prepared statements of ours: PREPARE, EXECUTE, DEALLOCATE. Pure; thread-safe.
namespace sluice::server::pgwire {

struct PrepareText {
  std::string name;
  std::vector<std::string> types;  // of its parameters, as written
};
// `before`: the text before the statement that is prepared. nullopt: it is not PREPARE name [(type,
// ...)] AS.
std::optional<PrepareText> ReadPrepareText(std::string_view before);

// 42P05, 26000.
Status NameIsTaken(std::string_view name);
Status NoPrepared(std::string_view name);

// Checks that the text is a statement of ours, whatever its parameters are. `types`: as in Parse.
Status CheckPreparedText(std::string_view text, const std::vector<uint32_t>& types);

struct ExecuteText {
  std::string name;
  std::vector<Span> arguments;  // places of the expressions in the text
  int64_t begin = 0;            // of EXECUTE: EXPLAIN and its options stand before it
};
// nullopt: it is not [EXPLAIN ...] EXECUTE name [(expression, ...)]; () is none of PostgreSQL's.
std::optional<ExecuteText> ReadExecuteText(std::string_view sql);

// What the database prepares in place of a statement of ours, with as many parameters: executing it
// checks and computes the arguments, and returns them.
// Without any it returns a row without columns; in SQLite, which has no such rows, one of NULL.
std::string ArgumentsQuery(size_t parameters,
                           catalog::Dialect dialect = catalog::Dialect::kPostgres);

// The prepared statement that DEALLOCATE name, DEALLOCATE ALL or DISCARD ALL ("") deallocates;
// nullopt for any other text.
std::optional<std::string> DeallocatedName(std::string_view sql);

// A row that the database returned, and the types of its columns.
struct AnsweredRow {
  std::vector<uint32_t> types;
  std::vector<std::optional<std::string>> values;
};

// The prepared statement with its parameters replaced by the arguments (literals in the select,
// values in our clauses), after any EXPLAIN that precedes EXECUTE. `sql`: the text of EXECUTE,
// which `execute` describes; places in the result map to it. `oids`, `types`: the parameters' types
// from Parse, or from PREPARE; in SQLite, which infers none, an argument without one keeps its own.
// 42601: wrong number of arguments.
Result<BoundText> BindArguments(std::string_view prepared, const std::vector<uint32_t>& oids,
                                const std::vector<std::string>& types, std::string_view sql,
                                const ExecuteText& execute, const AnsweredRow& arguments,
                                catalog::Dialect dialect = catalog::Dialect::kPostgres);

}  // namespace sluice::server::pgwire
