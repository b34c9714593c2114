#include <algorithm>
#include <set>

#include "base/letter_case.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_dialect_internal.h"

namespace sluice::catalog {
namespace {

using Kind = SqlToken::Kind;

DeclaredType TypeOfItem(std::string_view sql, const std::vector<SqlToken>& tokens, size_t begin,
                        size_t end) {
  const auto text = [&](size_t at) {
    return LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin));
  };
  const DeclaredType integer = PostgresTypeOf("int");
  const DeclaredType real = PostgresTypeOf("real");
  const DeclaredType any_text = PostgresTypeOf("text");
  if (begin == end) {
    return {};
  }
  const std::string first = text(begin);
  if (end - begin == 1) {
    if (tokens[begin].kind == Kind::kString) {
      return any_text;
    }
    if (tokens[begin].kind == Kind::kNumber) {
      return first.find_first_of(".e") == std::string::npos || first.starts_with("0x") ? integer
                                                                                       : real;
    }
    return first == "true" || first == "false" ? integer : DeclaredType();
  }
  const bool call =
      tokens[begin].kind == Kind::kWord && text(begin + 1) == "(" && text(end - 1) == ")" &&
      std::none_of(tokens.begin() + static_cast<std::ptrdiff_t>(begin) + 2,
                   tokens.begin() + static_cast<std::ptrdiff_t>(end) - 1,
                   [&](const SqlToken& token) { return token.depth <= tokens[begin].depth; });
  if (call) {
    static const std::set<std::string, std::less<>> kIntegers = {
        "count", "length",     "instr",        "unicode", "row_number",
        "rank",  "dense_rank", "ntile",        "changes", "last_insert_rowid",
        "sign",  "random",     "total_changes"};
    static const std::set<std::string, std::less<>> kReals = {
        "avg", "total", "round", "julianday", "sqrt", "ln", "log", "exp", "pow", "power"};
    static const std::set<std::string, std::less<>> kTexts = {
        "upper",          "lower",     "trim",   "ltrim", "rtrim",   "substr",   "substring",
        "replace",        "printf",    "format", "date",  "time",    "datetime", "strftime",
        "group_concat",   "hex",       "typeof", "quote", "version", "char",     "current_database",
        "current_schema", "string_agg"};
    if (kIntegers.contains(first)) {
      return integer;
    }
    if (kReals.contains(first)) {
      return real;
    }
    if (kTexts.contains(first)) {
      return any_text;
    }
    if (first == "sum") {
      return PostgresTypeOf("numeric");
    }
    if (first == "cast") {
      for (size_t at = end - 2; at > begin; --at) {
        if (text(at) == "as") {
          return PostgresTypeOf(
              sql.substr(tokens[at + 1].begin, tokens[end - 2].end - tokens[at + 1].begin));
        }
      }
    }
    return {};
  }
  if (first == "exists" || first == "not") {
    return integer;
  }
  bool arithmetic = false;
  for (size_t at = begin; at < end; ++at) {
    if (tokens[at].depth != tokens[begin].depth || first == "case" || first == "(") {
      continue;
    }
    const std::string word = text(at);
    if (word == "|") {
      return any_text;
    }
    if (word == "=" || word == "<" || word == ">" || word == "is" || word == "in" ||
        word == "like" || word == "and" || word == "or" || word == "between") {
      return integer;
    }
    arithmetic = arithmetic || (tokens[at].kind == Kind::kSymbol &&
                                (word == "+" || word == "-" || word == "*" || word == "/"));
  }
  return arithmetic ? PostgresTypeOf("numeric") : DeclaredType();
}

std::string NameAt(std::string_view sql, const std::vector<SqlToken>& tokens, size_t at) {
  const SqlToken& token = tokens[at];
  if (token.kind != Kind::kWord && token.kind != Kind::kQuotedName) {
    return "?column?";
  }
  const Result<TableName> plain =
      ParseTableName(sql.substr(token.begin, token.end - token.begin), Dialect::kPostgres);
  return plain.ok() ? plain->name : "?column?";
}

// PostgreSQL's name for an item without AS: a column, a function, a cast's column.
std::string NameOfItem(std::string_view sql, const std::vector<SqlToken>& tokens, size_t begin,
                       size_t end) {
  const auto text = [&](size_t at) {
    return at < end ? sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin)
                    : std::string_view();
  };
  size_t name = begin;
  while (text(name + 1) == "." && name + 2 < end) {
    name += 2;
  }
  const std::string word = name < end ? LowerAscii(text(name)) : std::string();
  if (word == "case" || word == "cast" || word == "exists") {
    return word == "cast" ? NameOfItem(sql, tokens, begin + 2, end) : word;
  }
  const bool whole = name + 1 >= end || text(name + 1) == "(" || text(name + 1) == ":" ||
                     LowerAscii(text(name + 1)) == "as";
  return begin < end && whole ? NameAt(sql, tokens, name) : "?column?";
}

}  // namespace

std::vector<SelectItem> SelectItems(std::string_view sql) {
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kSqlite);
  const auto lower = [&](size_t at) {
    return LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin));
  };
  size_t begin = 0;
  while (begin < tokens.size() &&
         !(tokens[begin].depth == 0 && (lower(begin) == "select" || lower(begin) == "returning"))) {
    ++begin;
  }
  ++begin;
  if (begin < tokens.size() && (lower(begin) == "distinct" || lower(begin) == "all")) {
    ++begin;
  }
  std::vector<SelectItem> items;
  static const std::set<std::string, std::less<>> kEnds = {"from",   "where", "group",     "having",
                                                           "window", "union", "intersect", "except",
                                                           "order",  "limit", ";"};
  size_t from = begin;
  for (size_t at = begin; at <= tokens.size() && from < tokens.size(); ++at) {
    const bool top = at == tokens.size() || tokens[at].depth == 0;
    const bool ends =
        at == tokens.size() || (top && tokens[at].kind != Kind::kQuotedName &&
                                tokens[at].kind != Kind::kString && kEnds.contains(lower(at)));
    if (!ends && !(top && lower(at) == ",")) {
      continue;
    }
    size_t end = at;
    SelectItem item;
    if (end > from && lower(end - 1) == "*" && (end - from == 1 || lower(end - 2) == ".")) {
      return {};
    }
    if (end >= from + 3 && lower(end - 2) == "as" && tokens[end - 2].depth == 0) {
      end -= 2;
    } else if (end >= from + 2 && tokens[end - 1].depth == 0 &&
               (tokens[end - 1].kind == Kind::kQuotedName ||
                (tokens[end - 1].kind == Kind::kWord && lower(end - 1) != "end")) &&
               (tokens[end - 2].kind != Kind::kSymbol || lower(end - 2) == ")")) {
      end -= 1;
    }
    item.name = end < at ? NameAt(sql, tokens, at - 1) : NameOfItem(sql, tokens, from, end);
    item.type = TypeOfItem(sql, tokens, from, end);
    items.push_back(std::move(item));
    if (ends) {
      break;
    }
    from = at + 1;
  }
  return items;
}

}  // namespace sluice::catalog
