#include "catalog/sqlite/sqlite_dialect_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"

namespace sluice::catalog {
namespace {

using Kind = SqlToken::Kind;

constexpr std::array<std::string_view, 6> kSessionWords = {
    "current_user", "session_user", "current_role", "current_catalog", "current_schema", "user"};

// Of SQLite's, which PostgreSQL takes as the name of a column.
const std::set<std::string, std::less<>> kKeywords = {
    "default", "table", "index", "check", "references", "constraint", "values", "unique"};

// A token with its text, which a rule may replace, and the blanks before it.
struct Piece {
  Kind kind;
  std::string text;   // as it is written out
  std::string lower;  // of a word
  std::string_view blanks;
  int depth = 0;
};

// Rewrites a statement token by token, and writes it out again.
class Rewriter {
 public:
  explicit Rewriter(std::string_view sql) {
    size_t end = 0;
    for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
      const std::string_view text = sql.substr(token.begin, token.end - token.begin);
      pieces_.push_back({token.kind, std::string(text),
                         token.kind == Kind::kWord ? LowerAscii(text) : std::string(),
                         sql.substr(end, token.begin - end), token.depth});
      end = token.end;
    }
    rest_ = sql.substr(end);
  }

  std::optional<std::string> Rewritten(bool catalog) {
    for (size_t at = 0; at < pieces_.size(); ++at) {
      Strings(at);
      if (catalog) {
        CatalogNames(at);
      }
    }
    for (size_t at = 0; at < pieces_.size(); ++at) {
      if (IsSymbol(at, ":") && IsSymbol(at + 1, ":") && pieces_[at + 1].blanks.empty()) {
        at = Cast(at, catalog);
      } else if (catalog) {
        at = CatalogOperators(at);
      }
    }
    if (!changed_) {
      return std::nullopt;
    }
    std::string out;
    for (const Piece& piece : pieces_) {
      out += piece.blanks;
      out += piece.text;
    }
    out += rest_;
    return out;
  }

 private:
  bool IsSymbol(size_t at, std::string_view text) const {
    return at < pieces_.size() && pieces_[at].kind == Kind::kSymbol && pieces_[at].text == text;
  }
  bool IsWord(size_t at, std::string_view lower) const {
    return at < pieces_.size() && pieces_[at].kind == Kind::kWord && pieces_[at].lower == lower;
  }
  bool IsName(size_t at) const {
    return at < pieces_.size() &&
           (pieces_[at].kind == Kind::kWord || pieces_[at].kind == Kind::kQuotedName);
  }
  void Replace(size_t at, std::string text) {
    pieces_[at].text = std::move(text);
    changed_ = true;
  }
  void Drop(size_t begin, size_t end) {
    for (size_t at = begin; at < end; ++at) {
      pieces_[at].text.clear();
      pieces_[at].kind = Kind::kWord;
      pieces_[at].lower = "";
      pieces_[at].blanks = at == begin ? pieces_[at].blanks : std::string_view();
    }
    changed_ = true;
  }

  // The value of E'...', with the quotes of a plain string.
  void Strings(size_t at) {
    Piece& piece = pieces_[at];
    if (piece.kind == Kind::kString && (piece.text[0] == 'E' || piece.text[0] == 'e')) {
      std::string plain = "'";
      for (size_t i = 2; i + 1 < piece.text.size(); ++i) {
        char c = piece.text[i];
        if (c == '\\' && i + 2 < piece.text.size()) {
          c = piece.text[++i];
          c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c == 'b' ? '\b' : c;
          plain += c == '\'' ? "''" : std::string(1, c);
        } else {
          plain += c;
        }
      }
      Replace(at, plain + "'");
    } else if (piece.kind == Kind::kString && piece.text[0] == '$') {
      const size_t tag = piece.text.find('$', 1) + 1;
      const std::string inside =
          piece.text.size() >= 2 * tag ? piece.text.substr(tag, piece.text.size() - 2 * tag) : "";
      Replace(at, QuoteText(inside, Dialect::kSqlite));
    } else if (IsWord(at, "ilike")) {
      Replace(at, "LIKE");
    }
  }

  // pg_catalog.f(...) is f(...); words that are functions without parentheses.
  void CatalogNames(size_t at) {
    if (IsWord(at, "pg_catalog") && IsSymbol(at + 1, ".") && IsName(at + 2) &&
        IsSymbol(at + 3, "(")) {
      Drop(at, at + 2);
    } else if (pieces_[at].kind == Kind::kWord && !IsSymbol(at + 1, "(") &&
               !IsSymbol(at + 1, ".") && (at == 0 || !IsSymbol(at - 1, ".")) &&
               !(at > 0 && IsWord(at - 1, "as")) &&
               std::find(kSessionWords.begin(), kSessionWords.end(), pieces_[at].lower) !=
                   kSessionWords.end()) {
      Replace(at, fmt::format("pg_{}()", pieces_[at].lower));
    } else if (at > 0 && IsWord(at - 1, "as") && kKeywords.contains(pieces_[at].lower)) {
      Replace(at, QuoteName(pieces_[at].text));
    } else if (at >= 2 && IsSymbol(at - 1, "=") &&
               (pieces_[at].text == "'f'" || pieces_[at].text == "'t'") &&
               HasPgColumn(pieces_[at - 2].lower, "boolean")) {
      Replace(at, pieces_[at].text == "'t'" ? "TRUE" : "FALSE");
    } else if (IsWord(at, "_pg_expandarray") && at >= 2 && IsSymbol(at + 1, "(")) {
      Expanded(at);
    } else if (at > 0 && IsSymbol(at - 1, ")") && IsSymbol(at, ".") && IsWord(at + 1, "x")) {
      Drop(at, at + 2);  // (keys).x, where keys is what Expanded has made of it
    } else if (IsWord(at, "collate") && at + 1 < pieces_.size()) {
      size_t end = at + 2;
      if (IsSymbol(at + 2, ".") && at + 3 < pieces_.size()) {
        end = at + 4;
      }
      Drop(at, std::min(end, pieces_.size()));
    } else if (IsWord(at, "operator") && IsSymbol(at + 1, "(")) {
      size_t close = at + 2;
      std::string symbol;
      for (; close < pieces_.size() && !IsSymbol(close, ")"); ++close) {
        symbol += pieces_[close].kind == Kind::kSymbol && pieces_[close].text != "."
                      ? pieces_[close].text
                      : "";
      }
      if (close < pieces_.size()) {
        Drop(at, close + 1);
        pieces_[at].kind = Kind::kSymbol;
        pieces_[at].text = Operator(symbol).value_or(symbol);
      }
    }
  }

  // [(]information_schema._pg_expandarray(array)[).n], and unnest(array) beside
  // generate_subscripts(array, 1): a row for each element, which SQLite has behind FROM.
  void Expanded(size_t at) {
    const size_t close = CloseOf(at + 1);
    if (close >= pieces_.size()) {
      return;
    }
    const std::string array = TextBetween(at + 2, close);
    const bool number = IsSymbol(close + 1, ")") && IsSymbol(close + 2, ".") &&
                        IsWord(close + 3, "n") && at >= 3 && IsSymbol(at - 3, "(");
    const size_t begin = number ? at - 3 : at - 2;
    const int depth = pieces_[begin].depth;
    Drop(begin, number ? close + 4 : close + 1);
    pieces_[begin].text = number ? "expanded.key + 1" : "expanded.value";
    AddExpanded(begin, depth, array);
  }

  void Subscripts(size_t at) {
    const size_t close = CloseOf(at + 1);
    const size_t second = close + 3;  // behind: name ,
    if (!IsName(close + 1) || !IsSymbol(close + 2, ",") || !IsWord(second, "generate_subscripts") ||
        !IsSymbol(second + 1, "(")) {
      return;
    }
    const size_t second_close = CloseOf(second + 1);
    const std::string array = TextBetween(at + 2, close);
    const int depth = pieces_[at].depth;
    Drop(second, std::min(second_close + 1, pieces_.size()));
    pieces_[second].text = " expanded.key + 1";
    Drop(at, close + 1);
    pieces_[at].text = "expanded.value";
    AddExpanded(at, depth, array);
  }

  std::string TextBetween(size_t begin, size_t end) const {
    std::string text;
    for (size_t at = begin; at < end; ++at) {
      text += std::string(pieces_[at].blanks) + pieces_[at].text;
    }
    return text;
  }

  // The elements, as one more table of the select around piece `at`.
  void AddExpanded(size_t at, int depth, const std::string& array) {
    bool from = false;
    for (size_t next = at; next <= pieces_.size(); ++next) {
      const bool ends = next == pieces_.size() || pieces_[next].depth < depth ||
                        (pieces_[next].depth == depth && from &&
                         (IsWord(next, "where") || IsWord(next, "order") || IsWord(next, "group")));
      from =
          from || (next < pieces_.size() && pieces_[next].depth == depth && IsWord(next, "from"));
      if (!ends) {
        continue;
      }
      const std::string table = ", json_each(pg_array_json(" + array + ")) AS expanded ";
      if (from && next < pieces_.size() &&
          pieces_[next].text.find(" AS expanded ") == std::string::npos) {
        Replace(next, table + pieces_[next].text);
      }
      return;
    }
  }

  static std::optional<std::string> Operator(std::string_view symbol) {
    if (symbol == "~" || symbol == "~*") {
      return " REGEXP ";
    }
    if (symbol == "!~" || symbol == "!~*") {
      return " NOT REGEXP ";
    }
    if (symbol == "~~" || symbol == "~~*") {
      return " LIKE ";
    }
    if (symbol == "!~~" || symbol == "!~~*") {
      return " NOT LIKE ";
    }
    return std::nullopt;
  }

  bool EndsOperand(size_t at) const {
    const Piece& piece = pieces_[at];
    return piece.kind == Kind::kString || piece.kind == Kind::kNumber ||
           piece.kind == Kind::kQuotedName || piece.text == ")" || piece.text == "]" ||
           (piece.kind == Kind::kWord && !piece.text.empty() && piece.lower != "where" &&
            piece.lower != "and" && piece.lower != "or" && piece.lower != "not" &&
            piece.lower != "select" && piece.lower != "when" && piece.lower != "then");
  }

  // Returns where to go on.
  size_t CatalogOperators(size_t at) {
    if (pieces_[at].kind == Kind::kSymbol && (pieces_[at].text == "~" || pieces_[at].text == "!") &&
        at > 0) {
      size_t end = at + 1;
      std::string symbol = pieces_[at].text;
      while (end < pieces_.size() && pieces_[end].blanks.empty() &&
             (IsSymbol(end, "~") || IsSymbol(end, "*"))) {
        symbol += pieces_[end++].text;
      }
      const std::optional<std::string> rewritten = Operator(symbol);
      if (rewritten.has_value() && EndsOperand(at - 1)) {
        Drop(at, end);
        pieces_[at].text = *rewritten;
        pieces_[at].kind = Kind::kSymbol;
      }
      return end - 1;
    }
    if ((IsWord(at, "any") || IsWord(at, "all") || IsWord(at, "some")) && IsSymbol(at + 1, "(") &&
        at >= 2 && !IsWord(at + 2, "select")) {
      AnyOf(at);
    } else if (IsWord(at, "array") && IsSymbol(at + 1, "(")) {
      // The elements of a select as an array's text.
      const size_t close = CloseOf(at + 1);
      if (close < pieces_.size()) {
        Replace(at, "(SELECT pg_array_of(element) FROM");
        Replace(at + 1, " (SELECT NULL AS element WHERE 0 UNION ALL SELECT * FROM (");
        Replace(close, ")))");
      }
    } else if (IsWord(at, "array") && IsSymbol(at + 1, "[")) {
      const size_t close = CloseOf(at + 1);
      if (close < pieces_.size()) {
        Replace(at, "pg_make_array");
        Replace(at + 1, "(");
        Replace(close, ")");
      }
    } else if (IsSymbol(at, "[") && at > 0 && EndsOperand(at - 1)) {
      const size_t close = CloseOf(at);
      const size_t begin = PrimaryBegin(at - 1);
      if (close < pieces_.size()) {
        pieces_[begin].text = "pg_array_get(" + pieces_[begin].text;
        Replace(at, ", ");
        Replace(close, ")");
      }
    } else if (IsWord(at, "values") && at > 0 && IsSymbol(at - 1, "(")) {
      NamedValues(at);
    } else if (IsWord(at, "json_build_object") && IsSymbol(at + 1, "(")) {
      Replace(at, "json_object");
    } else if (IsWord(at, "generate_series") && IsSymbol(at + 1, "(")) {
      Series(at);
    } else if (IsWord(at, "unnest") && IsSymbol(at + 1, "(")) {
      Unnest(at);
    } else if ((IsWord(at, "substring") || IsWord(at, "trim")) && IsSymbol(at + 1, "(")) {
      StandardCall(at);
    }
    return at;
  }

  // x = ANY (array), x <> ALL (array).
  void AnyOf(size_t at) {
    size_t op = at - 1;
    const bool equal = IsSymbol(op, "=");
    const bool unequal = op >= 2 && IsSymbol(op, ">") && IsSymbol(op - 1, "<");
    const size_t operand = unequal ? op - 1 : op;
    if ((!equal && !unequal) || operand == 0) {
      return;
    }
    const size_t begin = PrimaryBegin(operand - 1);
    pieces_[begin].text =
        (unequal ? std::string("NOT pg_any_equals(") : "pg_any_equals(") + pieces_[begin].text;
    Drop(operand, at + 1);
    Replace(at + 1, ", ");
  }

  // (VALUES ...) s(a, b): SQLite has no names for columns behind a table's own.
  void NamedValues(size_t at) {
    const size_t close = CloseOf(at - 1);
    const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
    if (!IsName(alias) || !IsSymbol(alias + 1, "(")) {
      return;
    }
    const size_t end = CloseOf(alias + 1);
    if (end >= pieces_.size()) {
      return;
    }
    std::string names;
    size_t number = 0;
    for (size_t name = alias + 2; name < end; name += 2) {
      names +=
          fmt::format("{}column{} AS {}", number == 0 ? "" : ", ", number + 1, pieces_[name].text);
      ++number;
    }
    Drop(alias + 1, end + 1);
    Replace(at - 1, fmt::format("(SELECT {} FROM (", names));
    Replace(close, "))");
  }

  // generate_series(a, b) s(n), or s alone: a table of numbers.
  void Series(size_t at) {
    const size_t close = CloseOf(at + 1);
    const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
    size_t comma = at + 2;
    while (comma < close &&
           !(IsSymbol(comma, ",") && pieces_[comma].depth == pieces_[at + 1].depth + 1)) {
      ++comma;
    }
    if (!IsName(alias) || comma >= close) {
      return;
    }
    const bool named = IsSymbol(alias + 1, "(") && IsName(alias + 2) && IsSymbol(alias + 3, ")");
    const std::string name = pieces_[named ? alias + 2 : alias].text;
    const std::string first =
        InSqliteDialect(TextBetween(at + 2, comma), true).value_or(TextBetween(at + 2, comma));
    const std::string last = InSqliteDialect(TextBetween(comma + 1, close), true)
                                 .value_or(TextBetween(comma + 1, close));
    const std::string table = fmt::format(
        "(WITH RECURSIVE series(n) AS (SELECT {0} WHERE {0} <= {1} UNION ALL SELECT n + 1 FROM"
        " series WHERE n < {1}) SELECT n AS {2} FROM series)",
        first, last, name);
    if (named) {
      Drop(alias + 1, alias + 4);
    }
    Drop(at, close + 1);
    pieces_[at].text = table;
  }

  // unnest(array) x: a table x with a column x.
  void Unnest(size_t at) {
    const size_t close = CloseOf(at + 1);
    if (IsWord(close + 3, "generate_subscripts")) {
      Subscripts(at);
      return;
    }
    const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
    if (!IsName(alias)) {
      return;
    }
    const std::string name = pieces_[alias].text;
    Replace(at, fmt::format("(SELECT value AS {} FROM json_each(pg_array_json", name));
    Replace(close, ")))");
  }

  void StandardCall(size_t at) {
    const size_t close = CloseOf(at + 1);
    const bool trims = pieces_[at].lower == "trim";
    if (!trims) {
      Replace(at, "substr");
    }
    for (size_t i = at + 2; i < close && i < pieces_.size(); ++i) {
      if (pieces_[i].depth != pieces_[at + 1].depth + 1) {
        continue;
      }
      if (!trims && (pieces_[i].lower == "from" || pieces_[i].lower == "for")) {
        Replace(i, ",");
      } else if (trims && (pieces_[i].lower == "both" || pieces_[i].lower == "leading" ||
                           pieces_[i].lower == "trailing")) {
        // trim(both y from x) is trim(x, y).
        const std::string function = pieces_[i].lower == "both"      ? "trim"
                                     : pieces_[i].lower == "leading" ? "ltrim"
                                                                     : "rtrim";
        std::string what;
        size_t from = i + 1;
        for (; from < close && pieces_[from].lower != "from"; ++from) {
          what += std::string(pieces_[from].blanks) + pieces_[from].text;
        }
        if (from >= close) {
          return;
        }
        Replace(at, function);
        Drop(i, from + 1);
        pieces_[close].text = (what.empty() ? "" : "," + what) + ")";
        return;
      }
    }
  }

  size_t CloseOf(size_t open) const {
    size_t close = open + 1;
    while (close < pieces_.size() &&
           !(pieces_[close].depth == pieces_[open].depth && pieces_[close].kind == Kind::kSymbol &&
             (pieces_[close].text == ")" || pieces_[close].text == "]"))) {
      ++close;
    }
    return close;
  }

  size_t BeforeDropped(size_t at) const {
    while (at > 0 && pieces_[at].text.empty()) {
      --at;
    }
    return at;
  }

  // The first piece of the operand that ends with piece `last`: a literal, a dotted name, a call, a
  // pair of parentheses, $n.
  size_t PrimaryBegin(size_t last) const {
    size_t at = last;
    at = BeforeDropped(at);
    if (const auto cast = casts_.find(at); cast != casts_.end()) {
      return cast->second;
    }
    if (pieces_[at].kind == Kind::kSymbol && (pieces_[at].text == ")" || pieces_[at].text == "]")) {
      const int depth = pieces_[at].depth;
      while (at > 0 && !(pieces_[at].depth == depth && pieces_[at].kind == Kind::kSymbol &&
                         (pieces_[at].text == "(" || pieces_[at].text == "["))) {
        --at;
      }
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

  // [pg_catalog.]name[(n)][\[\]] behind ::; where it ends.
  size_t TypeEnd(size_t at, std::string* name) const {
    if (IsWord(at, "pg_catalog") && IsSymbol(at + 1, ".")) {
      at += 2;
    }
    if (!IsName(at)) {
      return at;
    }
    *name = pieces_[at].kind == Kind::kWord ? pieces_[at].lower : pieces_[at].text;
    ++at;
    if ((*name == "double" && IsWord(at, "precision")) ||
        (*name == "character" && IsWord(at, "varying"))) {
      *name += " " + pieces_[at++].lower;
    }
    if (IsSymbol(at, "(")) {
      at = std::min(CloseOf(at) + 1, pieces_.size());
    }
    if ((IsWord(at, "with") || IsWord(at, "without")) && IsWord(at + 1, "time") &&
        IsWord(at + 2, "zone")) {
      at += 3;
    }
    while (IsSymbol(at, "[")) {
      at = std::min(CloseOf(at) + 1, pieces_.size());
      *name += "[]";
    }
    return at;
  }

  // What is cast becomes what SQLite would make of it; types that it does not have are its texts.
  // Returns the last piece of the cast.
  size_t Cast(size_t at, bool catalog) {
    std::string type;
    const size_t end = TypeEnd(at + 2, &type);
    if (at == 0 || type.empty()) {
      return at + 1;
    }
    const size_t last = BeforeDropped(at - 1);
    const size_t begin = PrimaryBegin(last);
    const bool literal = begin == last && pieces_[last].kind == Kind::kString;
    std::string before;
    std::string after;
    const auto one_of = [&type](std::initializer_list<std::string_view> types) {
      return std::find(types.begin(), types.end(), type) != types.end();
    };
    if (type == "bytea" && literal && pieces_[last].text.starts_with("'\\x")) {
      pieces_[last].text = "X'" + pieces_[last].text.substr(3);
    } else if (one_of({"int2", "int4", "int8", "int", "integer", "smallint", "bigint", "oid"})) {
      before = "CAST(";
      after = " AS INTEGER)";
    } else if (one_of({"float4", "float8", "real", "double precision"})) {
      before = "CAST(";
      after = " AS REAL)";
    } else if (one_of({"numeric", "decimal"})) {
      before = "CAST(";
      after = " AS NUMERIC)";
    } else if (one_of({"text", "varchar", "character varying", "name"})) {
      before = "CAST(";
      after = " AS TEXT)";
    } else if (one_of({"bool", "boolean"}) && literal) {
      const std::string word = LowerAscii(pieces_[last].text);
      pieces_[last].text =
          word == "'t'" || word == "'true'" || word == "'1'" || word == "'yes'" || word == "'on'"
              ? "TRUE"
              : "FALSE";
    } else if (catalog && one_of({"regclass", "regtype", "regproc", "regnamespace", "regrole"})) {
      before = fmt::format("pg_{}_{}(", type, literal ? "oid" : "name");
      after = ")";
    }
    Drop(at, end);
    pieces_[begin].text = before + pieces_[begin].text;
    pieces_[last].text += after;
    casts_[last] = begin;  // another cast behind it takes this one as its operand
    return end - 1;
  }

  std::vector<Piece> pieces_;
  std::map<size_t, size_t> casts_;  // from the last piece of each to its first
  std::string_view rest_;
  bool changed_ = false;
};

bool IsPgName(std::string_view lower) {
  return lower.starts_with("pg_") || lower == "information_schema";
}

// Functions of PostgreSQL whose name alone says so.
constexpr std::array<std::string_view, 9> kPgFunctions = {
    "format_type",     "current_schemas",        "obj_description",
    "col_description", "has_table_privilege",    "has_schema_privilege",
    "array_to_string", "has_database_privilege", "quote_ident"};

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

// As PostgreSQL calls an item without AS: a column, a function, a cast's column.
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

bool NamesPgCatalog(std::string_view sql) {
  for (const SqlToken& token : TokenizeSql(sql, Dialect::kPostgres)) {
    if (token.kind != Kind::kWord) {
      continue;
    }
    const std::string word = LowerAscii(sql.substr(token.begin, token.end - token.begin));
    if (IsPgName(word) ||
        std::find(kPgFunctions.begin(), kPgFunctions.end(), word) != kPgFunctions.end() ||
        (word != "user" &&
         std::find(kSessionWords.begin(), kSessionWords.end(), word) != kSessionWords.end())) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> NamedPgRelations(std::string_view sql) {
  const std::vector<SqlToken> tokens = TokenizeSql(sql, Dialect::kPostgres);
  const auto text = [&](size_t at) {
    return at < tokens.size() && tokens[at].kind != Kind::kString
               ? LowerAscii(sql.substr(tokens[at].begin, tokens[at].end - tokens[at].begin))
               : std::string();
  };
  std::set<std::string> names;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (text(at) == "information_schema" && text(at + 1) == ".") {
      names.insert("information_schema." + text(at + 2));
    } else if (text(at).starts_with("pg_") && text(at + 1) != "(" && text(at + 1) != ".") {
      names.insert(text(at));
    }
  }
  return {names.begin(), names.end()};
}

std::optional<std::string> InSqliteDialect(std::string_view sql, bool catalog) {
  const bool may_have =
      catalog || sql.find("::") != std::string_view::npos ||
      sql.find("E'") != std::string_view::npos || sql.find("e'") != std::string_view::npos ||
      sql.find("ike") != std::string_view::npos || sql.find("IKE") != std::string_view::npos;
  return may_have ? Rewriter(sql).Rewritten(catalog) : std::nullopt;
}

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
