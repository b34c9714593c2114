#pragma once

#include <string>

#include "parser/ast.h"

namespace sluice::parser {

// A statement as SQL, without the final ';'. Law: Parse(Print(s)) equals s except for spans.
std::string Print(const Statement& statement);
std::string Print(const Expression& expression);
std::string Print(const AttributeValue& value);
std::string Print(const ModelName& name);

}  // namespace sluice::parser
