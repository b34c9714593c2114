#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/sql/sql_text.h"

namespace sluice::catalog {

// A statement as its tokens, which rules replace and drop by index, written out again with the
// original blanks between them. An index past the last token denotes an empty piece. Each call
// takes about constant time, however deep the statement is nested. The statement's text must
// outlive it.
class StatementPieces {
 public:
  explicit StatementPieces(std::string_view sql);

  // nullopt: unchanged.
  std::optional<std::string> Text() const;

 protected:
  // A token with its text, which a rule may replace, and the preceding blanks.
  struct Piece {
    SqlToken::Kind kind;
    std::string text;   // as it is written out
    std::string lower;  // of a word
    std::string_view blanks;
    int depth = 0;
    size_t partner = 0;                    // of a bracket: the other one of the pair, see CloseOf
    size_t kept = 0;                       // of a dropped piece: the one before it that is not
    std::vector<std::string> before = {};  // what Prepend has put in front of the text, last first
  };

  bool IsSymbol(size_t at, std::string_view text) const {
    return at < pieces_.size() && pieces_[at].kind == SqlToken::Kind::kSymbol &&
           pieces_[at].text == text;
  }
  bool IsWord(size_t at, std::string_view lower) const {
    return at < pieces_.size() && pieces_[at].kind == SqlToken::Kind::kWord &&
           pieces_[at].lower == lower;
  }
  bool IsName(size_t at) const {
    return at < pieces_.size() && (pieces_[at].kind == SqlToken::Kind::kWord ||
                                   pieces_[at].kind == SqlToken::Kind::kQuotedName);
  }
  // An operand can end with this piece, so that an operator may follow.
  bool EndsOperand(size_t at) const;
  void Replace(size_t at, std::string text);
  void Prepend(size_t at, std::string text);
  void Drop(size_t begin, size_t end);
  std::string TextBetween(size_t begin, size_t end) const;
  // The parenthesis or bracket that closes the one at `open`; the number of pieces if none does.
  size_t CloseOf(size_t open) const;
  // The last piece up to `at` that was not dropped.
  size_t BeforeDropped(size_t at) const;

  // The first piece of the operand that ends with piece `last`: a literal, a dotted name, a call, a
  // pair of parentheses, $n, or as set by MakeOperand.
  size_t PrimaryBegin(size_t last) const;
  void MakeOperand(size_t begin, size_t last) { operands_[last] = begin; }

  std::vector<Piece> pieces_;

 private:
  void PairBrackets();

  std::map<size_t, size_t> operands_;  // from the last piece of each to its first
  std::string_view rest_;
  bool changed_ = false;
};

}  // namespace sluice::catalog
