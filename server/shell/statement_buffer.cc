#include "server/shell/statement_buffer.h"

#include <cctype>
#include <utility>

namespace sluice::server {
namespace {

bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

// "$$" or "$tag$" at `at`, or "" if there is none ($1 is a parameter, a$b a name).
std::string_view DollarTag(std::string_view line, size_t at) {
  if (at > 0 && IsNameCharacter(line[at - 1])) {
    return {};
  }
  size_t end = at + 1;
  while (end < line.size() && IsNameCharacter(line[end])) {
    ++end;
  }
  const bool digit_first =
      end > at + 1 && std::isdigit(static_cast<unsigned char>(line[at + 1])) != 0;
  if (end >= line.size() || line[end] != '$' || digit_first) {
    return {};
  }
  return line.substr(at, end - at + 1);
}

}  // namespace

void StatementBuffer::Add(std::string_view line) {
  for (size_t at = 0; at < line.size();) {
    switch (state_) {
      case State::kText:
        at = AddText(line, at);
        break;
      case State::kQuote:
        at = AddQuoted(line, at);
        break;
      case State::kDollar: {
        const size_t end = line.find(dollar_tag_, at);
        if (end == std::string_view::npos) {
          at = line.size();
        } else {
          at = end + dollar_tag_.size();
          state_ = State::kText;
        }
        break;
      }
      case State::kBlockComment:
        at = AddComment(line, at);
        break;
    }
  }
  text_ += line;
  text_ += '\n';
}

std::string StatementBuffer::Take() {
  StatementBuffer fresh;
  std::swap(*this, fresh);
  return std::move(fresh.text_);
}

size_t StatementBuffer::AddText(std::string_view line, size_t at) {
  const char c = line[at];
  const std::string_view two = line.substr(at, 2);
  if (two == "--") {
    return line.size();
  }
  if (two == "/*") {
    state_ = State::kBlockComment;
    comment_depth_ = 1;
    return at + 2;
  }
  if (std::isspace(static_cast<unsigned char>(c)) != 0) {
    return at + 1;
  }
  blank_ = false;
  complete_ = c == ';';
  if (c == '\'' || c == '"' || c == '`') {
    state_ = State::kQuote;
    quote_ = c;
  } else if (c == '$') {
    const std::string_view tag = DollarTag(line, at);
    if (!tag.empty()) {
      state_ = State::kDollar;
      dollar_tag_ = tag;
      return at + tag.size();
    }
  }
  return at + 1;
}

// A doubled quote closes and reopens, with the same result. A backslash escapes the next character
// inside double quotes only: attribute strings have escapes, 'C:\' does not.
size_t StatementBuffer::AddQuoted(std::string_view line, size_t at) {
  if (line[at] == '\\' && quote_ == '"') {
    return at + 2;
  }
  if (line[at] == quote_) {
    state_ = State::kText;
  }
  return at + 1;
}

size_t StatementBuffer::AddComment(std::string_view line, size_t at) {
  const std::string_view two = line.substr(at, 2);
  if (two == "/*") {
    ++comment_depth_;
    return at + 2;
  }
  if (two == "*/") {
    if (--comment_depth_ == 0) {
      state_ = State::kText;
    }
    return at + 2;
  }
  return at + 1;
}

}  // namespace sluice::server
