#include "server/shell/statement_buffer.h"

#include <utility>

namespace sluice::server {

void StatementBuffer::Add(std::string_view line) {
  may_be_complete_ = line.find(';') != std::string_view::npos || complete();
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
