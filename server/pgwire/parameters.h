#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "parser/ast.h"

// The parameters of Bind as parts of a statement. Pure; thread-safe.
namespace sluice::server::pgwire {

struct BoundParameter {
  uint32_t type = 0;  // OID; 0: the client leaves it to the statement
  bool binary = false;
  std::optional<std::string_view> value;  // nullopt: NULL
};

// An expression that stands in a select where the parameter stood, with its value and its type:
// ('5'::pg_catalog.int4). It means the same under any settings of the session, and nothing in it
// ends or begins anything else. `type_name`: of a type that is not built in, quoted and with its
// schema, as a server's format_type has it. 22021: a text is no UTF-8; 22P03: the bytes are none of
// the type; 0A000: the binary form of the type, or its name, is not known.
Result<std::string> ParameterLiteral(const BoundParameter& parameter,
                                     std::string_view type_name = "");

// The same in a select of SQLite's: a number, a text, X'...'.
Result<std::string> SqliteLiteral(const BoundParameter& parameter);

// The same as the value of an attribute, a list where it is an array of one dimension. A parameter
// without a type is a number where its text is one, as drivers send numbers that way.
Result<parser::AttributeValue> ParameterAttribute(const BoundParameter& parameter, Span place);

}  // namespace sluice::server::pgwire
