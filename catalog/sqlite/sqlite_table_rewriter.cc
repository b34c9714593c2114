#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "catalog/sqlite/sqlite_dialect_internal.h"
#include "catalog/sqlite/sqlite_table_rewriter_internal.h"

namespace sluice::catalog {
namespace {

constexpr std::array<std::string_view, 20> kAfterTables = {
    "where", "group",   "having",    "window", "order", "limit", "offset",
    "fetch", "union",   "intersect", "join",   "inner", "left",  "right",
    "full",  "natural", "cross",     "on",     "using", "except"};

}  // namespace

bool SqliteTableRewriter::IsAlias(size_t at) const {
  return IsName(at) && std::none_of(kAfterTables.begin(), kAfterTables.end(),
                                    [this, at](std::string_view word) { return IsWord(at, word); });
}

void SqliteTableRewriter::Expanded(size_t at) {
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

void SqliteTableRewriter::Subscripts(size_t at) {
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

void SqliteTableRewriter::AddExpanded(size_t at, int depth, const std::string& array) {
  bool from = false;
  for (size_t next = at; next <= pieces_.size(); ++next) {
    const bool ends = next == pieces_.size() || pieces_[next].depth < depth ||
                      (pieces_[next].depth == depth && from &&
                       (IsWord(next, "where") || IsWord(next, "order") || IsWord(next, "group")));
    from = from || (next < pieces_.size() && pieces_[next].depth == depth && IsWord(next, "from"));
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

void SqliteTableRewriter::NamedValues(size_t at) {
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

void SqliteTableRewriter::Series(size_t at) {
  const size_t close = CloseOf(at + 1);
  const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
  size_t comma = at + 2;
  while (comma < close &&
         !(IsSymbol(comma, ",") && pieces_[comma].depth == pieces_[at + 1].depth + 1)) {
    ++comma;
  }
  if (!IsAlias(alias) || comma >= close) {
    return;
  }
  const bool named = IsSymbol(alias + 1, "(") && IsName(alias + 2) && IsSymbol(alias + 3, ")");
  const std::string name = pieces_[named ? alias + 2 : alias].text;
  const std::string first =
      InSqliteDialect(TextBetween(at + 2, comma), true).value_or(TextBetween(at + 2, comma));
  const std::string last =
      InSqliteDialect(TextBetween(comma + 1, close), true).value_or(TextBetween(comma + 1, close));
  // Each bound once: they may have series of their own in them.
  const std::string table = fmt::format(
      "(WITH RECURSIVE bounds(first, last) AS (SELECT {}, {}), series(n) AS (SELECT first FROM"
      " bounds WHERE first <= last UNION ALL SELECT n + 1 FROM series, bounds WHERE n < last)"
      " SELECT n AS {} FROM series)",
      first, last, name);
  if (named) {
    Drop(alias + 1, alias + 4);
  }
  Drop(at, close + 1);
  pieces_[at].text = table;
}

void SqliteTableRewriter::Unnest(size_t at) {
  const size_t close = CloseOf(at + 1);
  if (IsWord(close + 3, "generate_subscripts")) {
    Subscripts(at);
    return;
  }
  const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
  const bool is_table = at > 0 && (IsWord(at - 1, "from") || IsWord(at - 1, "join"));
  if (close >= pieces_.size() || (!IsAlias(alias) && !is_table)) {
    return;
  }
  const std::string name = IsAlias(alias) ? pieces_[alias].text : "unnest";
  Replace(at, fmt::format("(SELECT value AS {} FROM json_each(pg_array_json", name));
  Replace(close, ")))");
}

void SqliteTableRewriter::FunctionAsTable(size_t at) {
  const size_t close = CloseOf(at + 1);
  const size_t alias = close + (IsWord(close + 1, "as") ? 2 : 1);
  if (IsAlias(alias)) {
    Replace(at, "(SELECT " + pieces_[at].text);
    Replace(close, fmt::format(") AS {})", pieces_[alias].text));
  }
}

void SqliteTableRewriter::DistinctOn(size_t at) {
  const size_t close = CloseOf(at + 2);
  if (close >= pieces_.size()) {
    return;
  }
  const int depth = pieces_[at].depth;
  const std::string group = " GROUP BY " + TextBetween(at + 3, close) + " ";
  Drop(at, close + 1);
  for (size_t end = close + 1; end < pieces_.size(); ++end) {
    if (pieces_[end].depth < depth ||
        (pieces_[end].depth == depth && (IsWord(end, "order") || IsWord(end, "limit")))) {
      Replace(end, group + pieces_[end].text);
      return;
    }
  }
  pieces_.back().text += group;
}

}  // namespace sluice::catalog
