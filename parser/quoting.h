#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "parser/ast.h"

namespace sluice::parser {

// The content of a quoted token of a clause. In '...' and "..." the quote is written twice or after
// a backslash; \\ and \n are escapes, too; any other backslash stands for itself, so that regular
// expressions need no doubling. In `...` only the doubled quote is an escape.
std::string Unquote(std::string_view token);

std::string QuoteString(std::string_view content);    // 'content'
std::string QuoteName(std::string_view content);      // "content"
std::string BackquoteName(std::string_view content);  // `content`

// Whether the clause lexer reads `text` as one unquoted name that is not a keyword of ours.
bool IsBareName(std::string_view text, bool narrow);

std::vector<std::string> SplitAtDots(std::string_view text);

// [schema.]name[:version] from a name as written. A slash makes it one of SQLFlow's addresses
// ("host:50055/my_model:v0.1"), which stay whole.
Result<ModelName> ToModelName(const Name& name);

}  // namespace sluice::parser
