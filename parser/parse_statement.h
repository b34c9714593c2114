#pragma once

#include <string_view>

#include "base/status.h"
#include "parser/ast.h"
#include "parser/splitter.h"

namespace sluice::parser {

// Each parses one piece of `script`, of the kind that its name says.
Result<ExtendedStatement> ParseQueryPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCommandPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCreateModelPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCreateModelTypePiece(std::string_view script, const Piece& piece);

Select MakeSelect(std::string_view script, Span span);

}  // namespace sluice::parser
