#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "server/pgwire/bound_text.h"

// Prepared statements of ours in SQL: PREPARE, EXECUTE, DEALLOCATE. Pure; thread-safe.
namespace sluice::server::pgwire {

struct PrepareText {
  std::string name;
  std::vector<std::string> types;  // of its parameters, as written
};
// `before`: what stands before the statement that is prepared. nullopt: it is not PREPARE name
// [(type, ...)] AS.
std::optional<PrepareText> ReadPrepareText(std::string_view before);

struct ExecuteText {
  std::string name;
  std::vector<Span> arguments;  // expressions, where they stand in the text
  int64_t begin = 0;            // of EXECUTE: what stands before is EXPLAIN and its options
};
// nullopt: it is not [EXPLAIN ...] EXECUTE name [(expression, ...)].
std::optional<ExecuteText> ReadExecuteText(std::string_view sql);

// What the database prepares in the place of a statement of ours, with as many parameters: EXECUTE
// of it checks and computes the arguments, and answers with them.
std::string ArgumentsQuery(size_t parameters);

// DEALLOCATE name, DEALLOCATE ALL and DISCARD ALL (""): which prepared statement the text forgets;
// nullopt for anything else.
std::optional<std::string> DeallocatedName(std::string_view sql);

// A row of the database's, and the types of its columns.
struct AnsweredRow {
  std::vector<uint32_t> types;
  std::vector<std::optional<std::string>> values;
};

// The prepared statement with the arguments in the place of its parameters, and behind the EXPLAIN
// that stands before EXECUTE: literals in the select, values in our clauses. `sql`: the EXECUTE,
// as `execute` has read it; places of the result are places of it. `oids`, `types`: of the
// parameters as Parse said, or as PREPARE did. 42601: the number of arguments is wrong.
Result<BoundText> BindArguments(std::string_view prepared, const std::vector<uint32_t>& oids,
                                const std::vector<std::string>& types, std::string_view sql,
                                const ExecuteText& execute, const AnsweredRow& arguments);

}  // namespace sluice::server::pgwire
