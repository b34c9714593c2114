#pragma once

#include "base/status.h"
#include "parser/lexer.h"
#include "parser/token.h"

namespace sluice::parser {

// SELECT * FROM t PREDICT p.y USING m: without TO the verb reads as an alias, and a following LABEL
// would begin another training than intended. `word` follows a complete operand of a query, where
// an alias may stand; returns an error if the following tokens can only be a clause of ours. Does
// not move the lexer.
Status CheckAliasIsNoClause(const Lexer& lexer, const Token& word);

// Whether WITH, COLUMN, USING or INTO, which the lexer has just read behind a complete operand,
// belongs to a training whose LABEL follows: the database continues none of them so.
bool BeginsTraining(const Lexer& lexer, const Token& keyword);

}  // namespace sluice::parser
