#pragma once

#include "base/status.h"
#include "parser/ast.h"
#include "parser/cursor.h"

namespace sluice::parser {

enum class Dialect {
  kColumn,    // COLUMN and TRANSFORM: "..." inside a call is a string, as in SQLFlow
  kValue,     // attribute values: "..." is a string, no names in backquotes
  kOptimize,  // MAXIMIZE, MINIMIZE, CONSTRAINT: "..." is a name
};

// OR < AND < NOT < comparisons < + - < * / % < signs; left-associative. Values stop at + and -:
// they have neither logic nor comparisons.
Result<Expression> ParseExpression(Cursor& cursor, Dialect dialect);

// One item of COLUMN: *, a name or a call.
Result<Expression> ParseColumn(Cursor& cursor);

// A constant: see AttributeValue. Arithmetic on numbers is done here.
Result<AttributeValue> ParseValue(Cursor& cursor);

}  // namespace sluice::parser
