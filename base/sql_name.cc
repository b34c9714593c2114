#include "base/sql_name.h"

#include <algorithm>
#include <array>

namespace sluice {
namespace {

// Reserved by PostgreSQL or SQLite; most are words that name columns.
constexpr std::array<std::string_view, 104> kReserved = {
    "add",         "all",          "alter",    "analyse",    "analyze",    "and",
    "any",         "array",        "as",       "asc",        "asymmetric", "autoincrement",
    "between",     "binary",       "both",     "case",       "cast",       "check",
    "collate",     "collation",    "column",   "commit",     "constraint", "create",
    "cross",       "current_date", "default",  "deferrable", "delete",     "desc",
    "distinct",    "do",           "drop",     "else",       "end",        "escape",
    "except",      "exists",       "false",    "fetch",      "for",        "foreign",
    "freeze",      "from",         "full",     "grant",      "group",      "having",
    "ilike",       "in",           "index",    "initially",  "inner",      "insert",
    "intersect",   "into",         "is",       "isnull",     "join",       "lateral",
    "leading",     "left",         "like",     "limit",      "localtime",  "natural",
    "not",         "notnull",      "null",     "offset",     "on",         "only",
    "or",          "order",        "outer",    "overlaps",   "placing",    "primary",
    "references",  "returning",    "right",    "select",     "set",        "similar",
    "some",        "symmetric",    "table",    "then",       "to",         "trailing",
    "transaction", "true",         "union",    "unique",     "update",     "user",
    "using",       "values",       "variadic", "verbose",    "when",       "where",
    "window",      "with"};

bool IsPlain(std::string_view name) {
  const auto starts = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !name.empty() && starts(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return starts(c) || (c >= '0' && c <= '9'); }) &&
         std::find(kReserved.begin(), kReserved.end(), name) == kReserved.end();
}

}  // namespace

std::string SqlName(std::string_view name) {
  if (IsPlain(name)) {
    return std::string(name);
  }
  std::string quoted = "\"";
  for (const char c : name) {
    quoted += c == '"' ? "\"\"" : std::string(1, c);
  }
  return quoted + '"';
}

std::string SqlText(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + '\'';
}

}  // namespace sluice
