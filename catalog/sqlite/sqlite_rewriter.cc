#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/letter_case.h"
#include "catalog/embedded_session.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sqlite/sqlite_dialect_internal.h"
#include "catalog/sqlite/sqlite_pg_catalog_internal.h"
#include "catalog/sqlite/sqlite_table_rewriter_internal.h"

namespace sluice::catalog {
namespace {

using Kind = SqlToken::Kind;

// Keywords of SQLite that PostgreSQL accepts as the name of a column.
const std::set<std::string, std::less<>> kKeywords = {
    "default", "table", "index", "check", "references", "constraint", "values", "unique"};

// Sluice's own tables.
const std::set<std::string, std::less<>> kOwnTables = {
    "models",      "model_versions", "model_chunks", "model_types", "model_type_versions",
    "jobs",        "job_events",     "job_metrics",  "job_terms",   "model_type_chunks",
    "job_journal", "job_runners",    "job_answers",  "job_records", "result_tables",
    "job_requests"};

// Rewrites a statement token by token, and writes it out again.
class Rewriter final : private SqliteTableRewriter {
 public:
  explicit Rewriter(std::string_view sql) : SqliteTableRewriter(sql), sql_(sql) {}

  std::optional<std::string> Rewritten(bool catalog) {
    for (size_t at = 0; at < pieces_.size(); ++at) {
      Strings(at, catalog);
      OwnTables(at);
      if (catalog) {
        CatalogNames(at);
      }
    }
    if (catalog) {
      OrderByNames();
    }
    for (size_t at = 0; at < pieces_.size(); ++at) {
      if (IsSymbol(at, ":") && IsSymbol(at + 1, ":") && pieces_[at + 1].blanks.empty()) {
        at = Cast(at, catalog);
      } else if (catalog) {
        at = CatalogOperators(at);
      }
    }
    return Text();
  }

 private:
  // The value of E'...', in the quotes of a plain string. Without an escape, as no driver sends it,
  // it is what SQLite reads: a column called e, and its alias.
  void Strings(size_t at, bool catalog) {
    Piece& piece = pieces_[at];
    if (piece.kind == Kind::kString && (piece.text[0] == 'E' || piece.text[0] == 'e')) {
      if (!catalog && piece.text.find('\\') == std::string::npos) {
        return;
      }
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

  // sluice.jobs, the name in databases with schemas.
  void OwnTables(size_t at) {
    if (!IsNamed(at, "sluice") || !IsSymbol(at + 1, ".") || (at > 0 && IsSymbol(at - 1, "."))) {
      return;
    }
    for (const std::string& table : kOwnTables) {
      if (IsNamed(at + 2, table)) {
        Replace(at + 2, "sluice_" + table);
        Drop(at, at + 2);
        return;
      }
    }
  }

  // With or without quotes.
  bool IsNamed(size_t at, const std::string& name) const {
    return IsWord(at, name) || (IsName(at) && pieces_[at].text == '"' + name + '"');
  }

  // pg_catalog.f(...) becomes f(...); words that are functions without parentheses.
  void CatalogNames(size_t at) {
    const bool table =
        at > 0 && (IsWord(at - 1, "table") || IsWord(at - 1, "exists") || IsWord(at - 1, "into"));
    if (IsWord(at, "pg_catalog") && IsSymbol(at + 1, ".") && IsName(at + 2) &&
        IsSymbol(at + 3, "(") && !table) {
      Drop(at, at + 2);
    } else if (pieces_[at].kind == Kind::kWord && !IsSymbol(at + 1, "(") &&
               !IsSymbol(at + 1, ".") && (at == 0 || !IsSymbol(at - 1, ".")) &&
               !(at > 0 && IsWord(at - 1, "as")) && IsSessionWord(pieces_[at].lower)) {
      Replace(at, fmt::format("pg_{}()", pieces_[at].lower));
    } else if (at > 0 &&
               (IsWord(at - 1, "from") || IsWord(at - 1, "join") || IsSymbol(at - 1, ",")) &&
               pieces_[at].lower.starts_with("pg_") && !IsSymbol(at + 1, ".") &&
               !IsSymbol(at + 1, "(") && FindPgRelation(pieces_[at].lower) != nullptr) {
      // Before a user's table of that name: pg_catalog is searched first.
      Replace(at, "pg_catalog." + pieces_[at].lower);
    } else if (at > 0 && IsWord(at - 1, "as") && kKeywords.contains(pieces_[at].lower)) {
      Replace(at, QuoteName(pieces_[at].text));
    } else if (at >= 2 && IsSymbol(at - 1, "=") &&
               (pieces_[at].text == "'f'" || pieces_[at].text == "'t'") &&
               HasPgColumn(pieces_[at - 2].lower, "boolean")) {
      Replace(at, pieces_[at].text == "'t'" ? "TRUE" : "FALSE");
    } else if (at > 0 && IsWord(at - 1, "like") && pieces_[at].kind == Kind::kString &&
               pieces_[at].text.find('\\') != std::string::npos && !IsWord(at + 1, "escape")) {
      Replace(at, pieces_[at].text + " ESCAPE '\\'");
    } else if (IsWord(at, "pg_show_all_settings") && IsSymbol(at + 1, "(") &&
               IsSymbol(at + 2, ")")) {
      Replace(at, "pg_catalog.pg_settings");
      Drop(at + 1, at + 3);
    } else if (IsWord(at, "_pg_expandarray") && at >= 2 && IsSymbol(at + 1, "(")) {
      Expanded(at);
    } else if (at > 0 && IsSymbol(at - 1, ")") && IsSymbol(at, ".") && IsWord(at + 1, "x")) {
      Drop(at, at + 2);  // (keys).x, where keys was produced by Expanded
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

  // Returns where to continue.
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
      // The elements of a select as the text of an array.
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
        Prepend(begin, "pg_array_get(");
        Replace(at, ", ");
        Replace(close, ")");
        MakeOperand(begin, close);
      }
    } else if (IsWord(at, "values") && at > 0 && IsSymbol(at - 1, "(")) {
      NamedValues(at);
    } else if (IsWord(at, "json_build_object") && IsSymbol(at + 1, "(")) {
      Replace(at, "json_object");
    } else if (IsWord(at, "generate_series") && IsSymbol(at + 1, "(")) {
      Series(at);
    } else if (IsWord(at, "unnest") && IsSymbol(at + 1, "(")) {
      Unnest(at);
    } else if (IsWord(at, "string_to_array") && IsSymbol(at + 1, "(") && at > 0 &&
               (IsSymbol(at - 1, ",") || IsWord(at - 1, "from"))) {
      FunctionAsTable(at);
    } else if (IsWord(at, "distinct") && IsWord(at + 1, "on") && IsSymbol(at + 2, "(")) {
      DistinctOn(at);
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
    Prepend(begin, unequal ? "NOT pg_any_equals(" : "pg_any_equals(");
    Drop(operand, at + 1);
    Replace(at + 1, ", ");
  }

  // ORDER BY name means the item of that name; SQLite could take it for the column of any table.
  void OrderByNames() {
    size_t at = 0;
    while (at < pieces_.size() &&
           !(pieces_[at].depth == 0 && IsWord(at, "order") && IsWord(at + 1, "by"))) {
      ++at;
    }
    if (at == pieces_.size()) {
      return;
    }
    const std::vector<SelectItem> items = SelectItems(sql_);
    for (at += 2; at < pieces_.size(); ++at) {
      const bool begins = IsWord(at - 1, "by") || IsSymbol(at - 1, ",");
      const bool ends = at + 1 == pieces_.size() || IsSymbol(at + 1, ",") ||
                        IsWord(at + 1, "asc") || IsWord(at + 1, "desc") || IsWord(at + 1, "limit");
      if (pieces_[at].depth != 0 || !begins || !ends || !IsName(at)) {
        continue;
      }
      const auto is_it = [&](const SelectItem& item) { return item.name == pieces_[at].lower; };
      if (std::count_if(items.begin(), items.end(), is_it) == 1) {
        const auto found = std::find_if(items.begin(), items.end(), is_it);
        Replace(at, fmt::format("{}", found - items.begin() + 1));
      }
    }
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
        if (from >= close || close >= pieces_.size()) {  // SQLite has an error for it
          return;
        }
        Replace(at, function);
        Drop(i, from + 1);
        pieces_[close].text = (what.empty() ? "" : "," + what) + ")";
        return;
      }
    }
  }

  // [pg_catalog.]name[(n)][\[\]] after ::; returns its end.
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

  // Rewrites a cast to SQLite's conversion; a type that SQLite does not have becomes text. Returns
  // the last piece of the cast.
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
    if (!before.empty()) {
      Prepend(begin, std::move(before));
    }
    pieces_[last].text += after;
    MakeOperand(begin, last);  // a following cast takes this one as its operand
    return end - 1;
  }

  const std::string_view sql_;
};

}  // namespace

std::optional<std::string> InSqliteDialect(std::string_view sql, bool catalog) {
  constexpr std::array<std::string_view, 8> kSigns = {"::",  "E'",      "e'",        "ike",
                                                      "IKE", "sluice.", "sluice\".", "$"};
  const bool may_have =
      catalog || std::any_of(kSigns.begin(), kSigns.end(), [sql](std::string_view sign) {
        return sql.find(sign) != std::string_view::npos;
      });
  std::optional<std::string> rewritten = may_have ? Rewriter(sql).Rewritten(catalog) : std::nullopt;
  return rewritten == sql ? std::nullopt : std::move(rewritten);
}

std::string InEmbeddedDialect(std::string_view sql) {
  return InSqliteDialect(sql, /*catalog=*/false).value_or(std::string(sql));
}

}  // namespace sluice::catalog
