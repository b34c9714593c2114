#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "parser/ast.h"

// Inserts Bind's parameters into a statement. Pure; thread-safe.
namespace sluice::server::pgwire {

struct BoundParameter {
  uint32_t type = 0;  // OID; 0: to be inferred from the statement
  bool binary = false;
  std::optional<std::string_view> value;  // nullopt: NULL
};

// An expression with the parameter's value and type that replaces it in a select:
// ('5'::pg_catalog.int4). It means the same under any session settings, and cannot open or close
// anything around it. `type_name`: of a type that is not built in, quoted and with its schema, as
// the server's format_type prints it. 22021: a text is not UTF-8; 22P03: the bytes are not a value
// of the type; 0A000: the type's binary form, or its name, is not known.
Result<std::string> ParameterLiteral(const BoundParameter& parameter,
                                     std::string_view type_name = "");

// The same for a select in SQLite: a number, a text, X'...'.
Result<std::string> SqliteLiteral(const BoundParameter& parameter);

// The same as the value of an attribute; a one-dimensional array becomes a list. A parameter
// without a type is a number if its text is one, since drivers send numbers that way.
Result<parser::AttributeValue> ParameterAttribute(const BoundParameter& parameter, Span place);

}  // namespace sluice::server::pgwire
