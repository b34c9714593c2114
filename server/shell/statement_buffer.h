#pragma once

#include <string>
#include <string_view>

namespace sluice::server {

// Collects typed lines until a statement is complete: a ';' outside strings, quoted names, dollar
// quotes and comments, with only blanks and comments after it. Looks at each byte once. Not
// thread-safe.
class StatementBuffer {
 public:
  // `line` without its newline.
  void Add(std::string_view line);
  bool complete() const { return complete_ && state_ == State::kText; }
  // A statement could begin here: so far only blanks and complete comments were typed.
  bool at_beginning() const { return blank_ && state_ == State::kText; }
  // Not inside a string, a quoted name or a comment, where a backslash is an ordinary character.
  bool takes_commands() const { return state_ == State::kText; }
  // Everything typed so far.
  const std::string& text() const { return text_; }
  // Only blanks and comments so far.
  bool blank() const { return blank_; }
  // Returns everything typed so far and starts afresh.
  std::string Take();

 private:
  enum class State { kText, kQuote, kDollar, kBlockComment };
  // Each takes a position in the line and returns the next one.
  size_t AddText(std::string_view line, size_t at);
  size_t AddQuoted(std::string_view line, size_t at);
  size_t AddComment(std::string_view line, size_t at);

  std::string text_;
  State state_ = State::kText;
  char quote_ = 0;          // kQuote: ' or " or `
  std::string dollar_tag_;  // kDollar: "$tag$"
  int comment_depth_ = 0;   // kBlockComment: they nest
  bool complete_ = false;
  bool blank_ = true;
};

}  // namespace sluice::server
