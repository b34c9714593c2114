#pragma once

#include "base/status.h"
#include "parser/lexer.h"
#include "parser/token.h"

namespace sluice::parser {

// SELECT * FROM t PREDICT p.y USING m: without TO the verb reads as an alias, and a LABEL behind it
// would begin another training than the one that was meant. `word` follows a complete operand of a
// query, where an alias may stand; an error when what comes next can only be a clause of ours.
// Leaves the lexer where it is.
Status CheckAliasIsNoClause(Lexer& lexer, const Token& word);

}  // namespace sluice::parser
