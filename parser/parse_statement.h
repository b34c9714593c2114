#pragma once

#include <string_view>

#include "base/status.h"
#include "parser/ast.h"
#include "parser/splitter.h"

namespace sluice::parser {

// Each reads one piece of `script` whose kind it names.
Result<ExtendedStatement> ParseQueryPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCommandPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCreateModelPiece(std::string_view script, const Piece& piece);
Result<ExtendedStatement> ParseCreateModelTypePiece(std::string_view script, const Piece& piece);

Select MakeSelect(std::string_view script, Span span);

}  // namespace sluice::parser
