#include "catalog/sql/select_shape.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/letter_case.h"

namespace sluice::catalog {
namespace {

// Words that, outside parentheses, make a SELECT more than one filtered table.
constexpr std::string_view kOtherShapes[] = {
    "join",   "cross",   "inner",  "left",        "right", "full",    "natural",   "group",
    "having", "order",   "limit",  "offset",      "fetch", "union",   "intersect", "except",
    "window", "for",     "into",   "tablesample", "only",  "indexed", "not",       "using",
    "on",     "lateral", "select", "values",      "over"};

constexpr std::string_view kClockWords[] = {"current_timestamp", "current_date", "current_time",
                                            "localtimestamp", "localtime"};

bool Among(std::string_view word, const std::string_view* begin, const std::string_view* end) {
  return std::find(begin, end, word) != end;
}

class ShapeFinder {
 public:
  ShapeFinder(std::string_view select, Dialect dialect)
      : sql_(select), tokens_(TokenizeSql(select, dialect)) {}

  std::optional<SingleTableSelect> Find() {
    if (Word(0) != "select" || Word(1) == "distinct" || Word(1) == "all") {
      return std::nullopt;
    }
    const size_t from = FindFrom();
    if (from <= 1 || from + 1 >= tokens_.size()) {
      return std::nullopt;
    }
    SingleTableSelect shape;
    shape.list = Text(tokens_[1].begin, tokens_[from - 1].end);
    size_t at = from + 1;
    if (!TakeTable(&at, &shape)) {
      return std::nullopt;
    }
    if (at == tokens_.size()) {
      return shape;
    }
    if (Word(at) != "where" || at + 1 >= tokens_.size() || !IsPlainCondition(at + 1)) {
      return std::nullopt;
    }
    shape.condition = Text(tokens_[at + 1].begin, tokens_.back().end);
    return shape;
  }

 private:
  std::string Text(size_t begin, size_t end) const {
    return std::string(sql_.substr(begin, end - begin));
  }

  // The token as a lower-case word outside parentheses; "" for other tokens.
  std::string Word(size_t i) const {
    if (i >= tokens_.size() || tokens_[i].kind != SqlToken::Kind::kWord || tokens_[i].depth != 0) {
      return "";
    }
    return LowerAscii(Text(tokens_[i].begin, tokens_[i].end));
  }

  bool IsSymbol(size_t i, char symbol) const {
    return i < tokens_.size() && tokens_[i].kind == SqlToken::Kind::kSymbol &&
           sql_[tokens_[i].begin] == symbol;
  }

  bool IsName(size_t i) const {
    return i < tokens_.size() && (tokens_[i].kind == SqlToken::Kind::kWord ||
                                  tokens_[i].kind == SqlToken::Kind::kQuotedName);
  }

  // 0 if there is none. The FROM of `a IS DISTINCT FROM b` does not count.
  size_t FindFrom() const {
    for (size_t i = 1; i < tokens_.size(); ++i) {
      const std::string word = Word(i);
      if (word == "from" && Word(i - 1) != "distinct") {
        return i;
      }
      if (word == "into" || word == "over" || word == "select" || IsSymbol(i, ';')) {
        return 0;
      }
    }
    return 0;
  }

  bool TakeTable(size_t* at, SingleTableSelect* shape) const {
    const size_t first = *at;
    if (!IsName(first) || IsOtherShape(first)) {
      return false;
    }
    ++*at;
    while (IsSymbol(*at, '.') && IsName(*at + 1)) {
      *at += 2;
    }
    shape->table = Text(tokens_[first].begin, tokens_[*at - 1].end);
    if (*at == tokens_.size() || Word(*at) == "where") {
      return true;
    }
    if (Word(*at) == "as") {
      ++*at;
    }
    if (!IsName(*at) || IsOtherShape(*at)) {
      return false;
    }
    shape->alias = Text(tokens_[*at].begin, tokens_[*at].end);
    ++*at;
    return true;
  }

  bool IsOtherShape(size_t i) const {
    return Among(Word(i), std::begin(kOtherShapes), std::end(kOtherShapes));
  }

  bool IsPlainCondition(size_t first) const {
    for (size_t i = first; i < tokens_.size(); ++i) {
      if ((IsOtherShape(i) && Word(i) != "not") || (tokens_[i].depth == 0 && IsSymbol(i, ';'))) {
        return false;
      }
    }
    return true;
  }

  std::string_view sql_;
  std::vector<SqlToken> tokens_;
};

}  // namespace

std::string SingleTableSelect::Qualified(std::string_view column) const {
  return alias.empty() ? std::string(column) : fmt::format("{}.{}", alias, column);
}

std::string SingleTableSelect::With(std::string_view extra, std::string_view table_suffix) const {
  // Line breaks, so that they end a comment at the end of the user's text.
  std::string text = fmt::format("SELECT {}\nFROM {}", list, table);
  if (!alias.empty()) {
    text += fmt::format(" AS {}", alias);
  }
  if (!table_suffix.empty()) {
    text += fmt::format(" {}", table_suffix);
  }
  if (condition.empty() && extra.empty()) {
    return text;
  }
  if (condition.empty()) {
    return fmt::format("{}\nWHERE {}", text, extra);
  }
  if (extra.empty()) {
    return fmt::format("{}\nWHERE {}", text, condition);
  }
  return fmt::format("{}\nWHERE ({}\n) AND {}", text, condition, extra);
}

std::optional<SingleTableSelect> FindSingleTable(std::string_view select, Dialect dialect) {
  return ShapeFinder(TrimStatement(select, dialect), dialect).Find();
}

std::vector<std::string> CalledFunctions(std::string_view select, Dialect dialect) {
  const std::vector<SqlToken> tokens = TokenizeSql(select, dialect);
  std::vector<std::string> names;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind != SqlToken::Kind::kWord && tokens[i].kind != SqlToken::Kind::kQuotedName) {
      continue;
    }
    const bool quoted = tokens[i].kind == SqlToken::Kind::kQuotedName;
    const std::string_view token = select.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
    std::string name = quoted ? std::string(token.substr(1, token.size() - 2)) : LowerAscii(token);
    const bool called = i + 1 < tokens.size() && select[tokens[i + 1].begin] == '(';
    if (called || Among(name, std::begin(kClockWords), std::end(kClockWords))) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace sluice::catalog
