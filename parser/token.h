#pragma once

#include <string_view>

#include "base/status.h"

namespace sluice::parser {

// A piece of the script; `text` points into it, quotes included.
struct Token {
  enum class Kind {
    kEnd,     // the end of the script, or of a statement's tokens
    kWord,    // an unquoted name or keyword
    kQuoted,  // "...", `...` or, in the database's text, [...]
    kString,  // '...', and in the database's text also E'...' and $tag$...$tag$
    kNumber,
    kSymbol,  // an operator or a punctuation mark, ';' too
  };
  Kind kind = Kind::kEnd;
  std::string_view text;
  Span span;

  bool IsSymbol(std::string_view symbol) const { return kind == Kind::kSymbol && text == symbol; }
  bool IsWord(std::string_view upper_case) const;  // in any case
  bool EndsStatement() const { return kind == Kind::kEnd || IsSymbol(";"); }
};

}  // namespace sluice::parser
