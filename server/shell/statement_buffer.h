#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parser/splitter.h"

namespace sluice::server {

// Collects typed lines until a statement is complete: until a ';' that ends one by the rules of the
// parser, with only blanks and comments after it. Reads what was typed again where a line may have
// changed the answer. Not thread-safe.
class StatementBuffer {
 public:
  // `line` without its newline.
  void Add(std::string_view line);
  bool complete() const;
  // A statement could begin here: so far only blanks and complete comments were typed.
  bool at_beginning() const { return !begun_ && end() == parser::ScriptEnd::kBlank; }
  // Not inside a string, a quoted name or a comment, where a backslash is an ordinary character.
  bool takes_commands() const { return end() != parser::ScriptEnd::kInToken; }
  // Everything typed so far.
  const std::string& text() const { return text_; }
  // Returns everything typed so far and starts afresh.
  std::string Take();

 private:
  parser::ScriptEnd end() const;

  std::string text_;
  bool may_be_complete_ = false;  // the last line may end it, or it was complete before
  mutable bool begun_ = false;    // a statement has
  mutable std::optional<parser::ScriptEnd> end_ = parser::ScriptEnd::kBlank;
};

}  // namespace sluice::server
