#include "catalog/sql/sql_text.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/letter_case.h"
#include "catalog/sql/token_limit.h"

namespace sluice::catalog {
namespace {

bool IsSpace(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

bool IsWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsWordPart(char c) {
  return IsWordStart(c) || (c >= '0' && c <= '9') || c == '$';
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class Lexer {
 public:
  Lexer(std::string_view sql, Dialect dialect) : sql_(sql), dialect_(dialect) {}

  std::vector<SqlToken> Run() {
    while (SkipBlanks()) {
      const size_t begin = at_;
      const SqlToken::Kind kind = Take();
      const char first = sql_[begin];
      if (kind == SqlToken::Kind::kSymbol && (first == ')' || first == ']') && depth_ > 0) {
        --depth_;
      }
      tokens_.push_back({kind, begin, at_, depth_});
      if (kind == SqlToken::Kind::kSymbol && (first == '(' || first == '[')) {
        ++depth_;
      }
    }
    return std::move(tokens_);
  }

  // Without keeping them.
  bool HasMoreThan(size_t most) {
    size_t count = 0;
    while (count <= most && SkipBlanks()) {
      Take();
      ++count;
    }
    return count > most;
  }

 private:
  char Peek(size_t ahead) const { return at_ + ahead < sql_.size() ? sql_[at_ + ahead] : '\0'; }

  // Moves to the next token; false at the end.
  bool SkipBlanks() {
    while (at_ < sql_.size()) {
      if (IsSpace(sql_[at_])) {
        ++at_;
      } else if (dialect_ == Dialect::kSqlite && sql_.substr(at_).starts_with(kByteOrderMark)) {
        at_ += kByteOrderMark.size();  // where a word could begin, SQLite takes it for a blank
      } else if (Peek(0) == '-' && Peek(1) == '-') {
        // PostgreSQL ends a comment at a carriage return, too.
        at_ = std::min(sql_.find_first_of(dialect_ == Dialect::kPostgres ? "\r\n" : "\n", at_),
                       sql_.size());
      } else if (Peek(0) == '/' && Peek(1) == '*') {
        SkipBlockComment();
      } else {
        return true;
      }
    }
    return false;
  }

  void SkipBlockComment() {
    int open = 0;
    do {
      if (Peek(0) == '/' && Peek(1) == '*' && (open == 0 || dialect_ == Dialect::kPostgres)) {
        ++open;  // only PostgreSQL nests comments
        at_ += 2;
      } else if (Peek(0) == '*' && Peek(1) == '/') {
        --open;
        at_ += 2;
      } else {
        ++at_;
      }
    } while (open > 0 && at_ < sql_.size());
    at_ = std::min(at_, sql_.size());
  }

  SqlToken::Kind Take() {
    const char c = sql_[at_];
    const bool postgres = dialect_ == Dialect::kPostgres;
    if (c == '\'') {
      TakeQuoted('\'', false);
      return SqlToken::Kind::kString;
    }
    if (postgres && (c == 'e' || c == 'E') && Peek(1) == '\'') {
      TakeEscapeString();
      return SqlToken::Kind::kString;
    }
    if (c == '"' || (!postgres && c == '`')) {
      TakeQuoted(c, false);
      return SqlToken::Kind::kQuotedName;
    }
    if (!postgres && c == '[') {
      at_ = std::min(sql_.find(']', at_), sql_.size() - 1) + 1;
      return SqlToken::Kind::kQuotedName;
    }
    if (postgres && c == '$' && TakeDollarQuoted()) {
      return SqlToken::Kind::kString;
    }
    if (IsWordStart(c)) {
      while (at_ < sql_.size() && IsWordPart(sql_[at_])) {
        ++at_;
      }
      return SqlToken::Kind::kWord;
    }
    if (std::isdigit(static_cast<unsigned char>(c)) != 0 ||
        (c == '.' && std::isdigit(static_cast<unsigned char>(Peek(1))) != 0)) {
      // A dollar directly after digits may begin a string ($1$$); after letters it belongs to the
      // name.
      bool letters = false;
      while (at_ < sql_.size() &&
             (sql_[at_] == '.' || (IsWordPart(sql_[at_]) && (letters || sql_[at_] != '$')))) {
        const bool exponent = (sql_[at_] | 0x20) == 'e' && IsDigit(Peek(1));
        letters = letters || (IsWordStart(sql_[at_]) && !exponent);
        ++at_;
      }
      return SqlToken::Kind::kNumber;
    }
    ++at_;
    return SqlToken::Kind::kSymbol;
  }

  // E'...', and the strings on the following lines, which continue it under the same rules.
  void TakeEscapeString() {
    ++at_;
    size_t end = at_;
    bool continued = true;
    while (continued && Peek(0) == '\'') {
      TakeQuoted('\'', true);
      end = at_;
      while (at_ < sql_.size() && IsSpace(sql_[at_])) {
        ++at_;
      }
      continued = sql_.substr(end, at_ - end).find_first_of("\r\n") != std::string_view::npos;
    }
    at_ = end;
  }

  // A doubled quote stands for itself.
  void TakeQuoted(char quote, bool backslashes) {
    ++at_;
    while (at_ < sql_.size()) {
      if (backslashes && sql_[at_] == '\\') {
        at_ += 2;
      } else if (sql_[at_] == quote) {
        ++at_;
        if (Peek(0) != quote) {
          return;
        }
        ++at_;
      } else {
        ++at_;
      }
    }
    at_ = std::min(at_, sql_.size());
  }

  // $tag$ ... $tag$; false when the dollar does not begin one ($1).
  bool TakeDollarQuoted() {
    size_t tag_end = at_ + 1;
    while (tag_end < sql_.size() && sql_[tag_end] != '$' && IsWordPart(sql_[tag_end])) {
      ++tag_end;
    }
    if (tag_end >= sql_.size() || sql_[tag_end] != '$' ||
        std::isdigit(static_cast<unsigned char>(Peek(1))) != 0) {
      return false;
    }
    const std::string_view tag = sql_.substr(at_, tag_end + 1 - at_);
    const size_t close = sql_.find(tag, tag_end + 1);
    at_ = close == std::string_view::npos ? sql_.size() : close + tag.size();
    return true;
  }

  std::string_view sql_;
  Dialect dialect_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<SqlToken> tokens_;
};

// The name that a word or a quoted name stands for.
std::string NameOf(std::string_view token, Dialect dialect) {
  const char first = token.front();
  if (first == '"' || first == '`' || first == '[') {
    const char quote = first == '[' ? ']' : first;
    std::string name;
    for (size_t i = 1; i + 1 < token.size(); ++i) {
      name += token[i];
      if (token[i] == quote && token[i + 1] == quote) {
        ++i;
      }
    }
    return name;
  }
  return dialect == Dialect::kPostgres ? LowerAscii(token) : std::string(token);
}

}  // namespace

std::vector<SqlToken> TokenizeSql(std::string_view sql, Dialect dialect) {
  return Lexer(sql, dialect).Run();
}

Status CheckTokens(std::string_view sql) {
  // A token has a byte at least.
  if (sql.size() <= kMostTokens || (!Lexer(sql, Dialect::kPostgres).HasMoreThan(kMostTokens) &&
                                    !Lexer(sql, Dialect::kSqlite).HasMoreThan(kMostTokens))) {
    return OkStatus();
  }
  return Status(
             Code::kInvalidArgument,
             fmt::format("the statement has more than {} words, values and symbols", kMostTokens))
      .SqlState("54000")
      .Hint("send it in parts, or rows by COPY, or values as parameters; a text counts as one");
}

std::string VerbOf(std::string_view sql, Dialect dialect) {
  constexpr size_t kBeginning = 200;  // enough but for a comment
  constexpr std::array<std::string_view, 5> kVerbs = {"SELECT", "INSERT", "UPDATE", "DELETE",
                                                      "REPLACE"};
  const auto upper = [sql](const SqlToken& token) {
    return UpperAscii(sql.substr(token.begin, token.end - token.begin));
  };
  std::vector<SqlToken> tokens = TokenizeSql(sql.substr(0, kBeginning), dialect);
  std::string first = tokens.empty() ? "" : upper(tokens.front());
  if (!first.empty() && first != "WITH") {
    return first;
  }
  tokens = TokenizeSql(sql, dialect);
  first = tokens.empty() ? "" : upper(tokens.front());
  for (const SqlToken& token : tokens) {
    if (first == "WITH" && token.kind == SqlToken::Kind::kWord && token.depth == 0 &&
        std::find(kVerbs.begin(), kVerbs.end(), upper(token)) != kVerbs.end()) {
      return upper(token);
    }
  }
  return first;
}

std::string_view TrimStatement(std::string_view sql, Dialect dialect) {
  while (!sql.empty() && IsSpace(sql.front())) {
    sql.remove_prefix(1);
  }
  std::vector<SqlToken> tokens = TokenizeSql(sql, dialect);
  while (!tokens.empty() && sql[tokens.back().begin] == ';') {
    sql = sql.substr(0, tokens.back().begin);
    tokens.pop_back();
  }
  while (!sql.empty() && IsSpace(sql.back())) {
    sql.remove_suffix(1);
  }
  return sql;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string QuoteName(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    if (c == '"') {
      quoted += '"';
    }
    quoted += c;
  }
  return quoted + '"';
}

std::string QuoteText(std::string_view text, Dialect dialect) {
  const bool escaped = dialect == Dialect::kPostgres && text.find('\\') != std::string_view::npos;
  std::string quoted = escaped ? "E'" : "'";
  for (const char c : text) {
    if (c == '\'' || (escaped && c == '\\')) {
      quoted += c;
    }
    quoted += c;
  }
  return quoted + '\'';
}

std::string TableName::Quoted() const {
  return schema.empty() ? QuoteName(name) : QuoteName(schema) + "." + QuoteName(name);
}

std::string TableName::Text() const {
  const auto readable = [](const std::string& part) {
    const bool plain =
        !part.empty() && std::isdigit(static_cast<unsigned char>(part.front())) == 0 &&
        std::all_of(part.begin(), part.end(), [](unsigned char c) {
          return c == '_' || c >= 0x80 || (std::isalnum(c) != 0 && std::isupper(c) == 0);
        });
    return plain ? part : QuoteName(part);
  };
  return schema.empty() ? readable(name) : readable(schema) + "." + readable(name);
}

Result<TableName> ParseTableName(std::string_view text, Dialect dialect) {
  const std::vector<SqlToken> tokens = TokenizeSql(text, dialect);
  std::vector<std::string> parts;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view token = text.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
    const bool is_name =
        tokens[i].kind == SqlToken::Kind::kWord || tokens[i].kind == SqlToken::Kind::kQuotedName;
    if (i % 2 == 0 ? !is_name : token != ".") {
      parts.clear();
      break;
    }
    if (is_name) {
      parts.push_back(NameOf(token, dialect));
    }
  }
  if (tokens.size() % 2 == 0 || parts.empty() || parts.size() > 2 || parts.back().empty()) {
    return SyntaxError(fmt::format("'{}' is not a table name; expected [schema.]table", text));
  }
  TableName name;
  name.name = std::move(parts.back());
  if (parts.size() == 2) {
    name.schema = std::move(parts.front());
  }
  return name;
}

}  // namespace sluice::catalog
