#include "server/shell/statement_buffer.h"

#include <algorithm>
#include <utility>

namespace sluice::server {
namespace {

// Whether there is a ';' that only blanks or a comment follow. What was typed is read again where
// it may have ended, so a line of many, such as ('a;b'), has to be told from that.
bool MayEndStatement(std::string_view line) {
  for (size_t at = line.find(';'); at != std::string_view::npos; at = line.find(';', at + 1)) {
    const size_t next = line.find_first_not_of(" \t\r", at + 1);
    const std::string_view rest = line.substr(std::min(next, line.size()));
    if (rest.empty() || rest.starts_with("--") || rest.starts_with("/*")) {
      return true;
    }
  }
  return false;
}

}  // namespace

void StatementBuffer::Add(std::string_view line) {
  may_be_complete_ = MayEndStatement(line) || complete();
  text_ += line;
  text_ += '\n';
  end_.reset();
}

bool StatementBuffer::complete() const {
  return may_be_complete_ && end() == parser::ScriptEnd::kComplete;
}

std::string StatementBuffer::Take() {
  StatementBuffer fresh;
  std::swap(*this, fresh);
  return std::move(fresh.text_);
}

parser::ScriptEnd StatementBuffer::end() const {
  if (!end_) {
    end_ = parser::EndOf(text_);
    begun_ = *end_ == parser::ScriptEnd::kInStatement || *end_ == parser::ScriptEnd::kComplete;
  }
  return *end_;
}

}  // namespace sluice::server
