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
  std::vector<std::string> arguments;  // expressions, as written
};
// nullopt: it is not EXECUTE name [(expression, ...)].
std::optional<ExecuteText> ReadExecuteText(std::string_view sql);

// DEALLOCATE name, DEALLOCATE ALL and DISCARD ALL (""): which prepared statement the text forgets;
// nullopt for anything else.
std::optional<std::string> DeallocatedName(std::string_view sql);

// The prepared statement with the arguments in the place of its parameters: expressions in the
// select, constants in our clauses. Each place of it is the EXECUTE's. 42601: their number is
// wrong; 0A000: an attribute's value is no constant.
Result<BoundText> BindArguments(std::string_view prepared, const std::vector<std::string>& types,
                                const ExecuteText& execute);

}  // namespace sluice::server::pgwire
