#include "base/letter_case.h"
#include "catalog/sqlite/sqlite_statement_pieces_internal.h"

#include <algorithm>
#include <utility>

namespace sluice::catalog {

using Kind = SqlToken::Kind;

StatementPieces::StatementPieces(std::string_view sql) {
  size_t end = 0;
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
    const std::string_view text = sql.substr(token.begin, token.end - token.begin);
    pieces_.push_back({token.kind, std::string(text),
                       token.kind == Kind::kWord ? LowerAscii(text) : std::string(),
                       sql.substr(end, token.begin - end), token.depth});
    pieces_.back().kept = pieces_.size() < 2 ? 0 : pieces_.size() - 2;
    end = token.end;
  }
  rest_ = sql.substr(end);
  PairBrackets();
}

void StatementPieces::PairBrackets() {
  std::vector<size_t> open;
  for (size_t at = 0; at < pieces_.size(); ++at) {
    if (IsSymbol(at, "(") || IsSymbol(at, "[")) {
      pieces_[at].partner = pieces_.size();
      open.push_back(at);
    } else if ((IsSymbol(at, ")") || IsSymbol(at, "]")) && !open.empty()) {
      pieces_[at].partner = open.back();
      pieces_[open.back()].partner = at;
      open.pop_back();
    }
  }
}

std::optional<std::string> StatementPieces::Text() const {
  if (!changed_) {
    return std::nullopt;
  }
  std::string out;
  for (const Piece& piece : pieces_) {
    out += piece.blanks;
    std::for_each(piece.before.rbegin(), piece.before.rend(),
                  [&out](const std::string& before) { out += before; });
    out += piece.text;
  }
  out += rest_;
  return out;
}

void StatementPieces::Replace(size_t at, std::string text) {
  pieces_[at].text = std::move(text);
  changed_ = true;
}

void StatementPieces::Prepend(size_t at, std::string text) {
  pieces_[at].before.push_back(std::move(text));
  changed_ = true;
}

void StatementPieces::Drop(size_t begin, size_t end) {
  const size_t kept = begin == 0 ? 0 : BeforeDropped(begin - 1);
  for (size_t at = begin; at < end; ++at) {
    pieces_[at].kept = kept;
    pieces_[at].before.clear();
    pieces_[at].text.clear();
    pieces_[at].kind = Kind::kWord;
    pieces_[at].lower = "";
    pieces_[at].blanks = at == begin ? pieces_[at].blanks : std::string_view();
  }
  changed_ = true;
}

std::string StatementPieces::TextBetween(size_t begin, size_t end) const {
  std::string text;
  for (size_t at = begin; at < end; ++at) {
    text += pieces_[at].blanks;
    std::for_each(pieces_[at].before.rbegin(), pieces_[at].before.rend(),
                  [&text](const std::string& before) { text += before; });
    text += pieces_[at].text;
  }
  return text;
}

size_t StatementPieces::CloseOf(size_t open) const {
  return pieces_[open].partner;
}

size_t StatementPieces::BeforeDropped(size_t at) const {
  while (at > 0 && pieces_[at].text.empty()) {
    at = pieces_[at].kept;
  }
  return at;
}

bool StatementPieces::EndsOperand(size_t at) const {
  const Piece& piece = pieces_[at];
  return piece.kind == Kind::kString || piece.kind == Kind::kNumber ||
         piece.kind == Kind::kQuotedName || piece.text == ")" || piece.text == "]" ||
         (piece.kind == Kind::kWord && !piece.text.empty() && piece.lower != "where" &&
          piece.lower != "and" && piece.lower != "or" && piece.lower != "not" &&
          piece.lower != "select" && piece.lower != "when" && piece.lower != "then");
}

size_t StatementPieces::PrimaryBegin(size_t last) const {
  size_t at = last;
  at = BeforeDropped(at);
  if (const auto made = operands_.find(at); made != operands_.end()) {
    return made->second;
  }
  if (pieces_[at].kind == Kind::kSymbol && (pieces_[at].text == ")" || pieces_[at].text == "]")) {
    at = pieces_[at].partner;
    const bool call = at > 0 && IsName(at - 1) && pieces_[at - 1].blanks.data() != nullptr &&
                      pieces_[at].blanks.empty() && !pieces_[at - 1].text.empty();
    if (!call) {
      return at;
    }
    --at;
  }
  if (pieces_[at].kind == Kind::kNumber && at > 0 && IsSymbol(at - 1, "$")) {
    return at - 1;
  }
  while (at >= 2 && IsSymbol(at - 1, ".") && IsName(at) && IsName(at - 2)) {
    at -= 2;
  }
  return at;
}

}  // namespace sluice::catalog
