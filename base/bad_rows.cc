#include "base/bad_rows.h"

#include "base/sql_name.h"

namespace sluice {
namespace {

constexpr std::string_view kRowsWhere = "in rows WHERE ";
constexpr std::string_view kSelectPlace = "FROM (...) AS s";

std::optional<std::string> Quoted(std::string_view cell) {
  constexpr size_t kLongest = 200;
  // How a database reads a backslash inside quotes depends on its settings.
  if (cell.size() > kLongest ||
      cell.find_first_of(std::string_view("\\\0", 2)) != std::string::npos) {
    return std::nullopt;
  }
  return SqlText(cell);
}

}  // namespace

std::string RowsWhere(std::string_view condition) {
  return std::string(kRowsWhere) + std::string(condition);
}

std::string RowsWithText(std::string_view column, std::string_view cell) {
  const std::optional<std::string> quoted = Quoted(cell);
  return quoted.has_value() ? RowsWhere(SqlName(column) + " = " + *quoted) : "";
}

std::string KeepRowsWithoutText(std::string_view column, std::string_view cell) {
  const std::optional<std::string> quoted = Quoted(cell);
  return quoted.has_value() ? KeepRowsWhere(SqlName(column) + " <> " + *quoted)
                            : "leave such rows out by WHERE";
}

std::string KeepRowsWhere(std::string_view condition) {
  return "leave such rows out: SELECT * " + std::string(kSelectPlace) + " WHERE " +
         std::string(condition);
}

std::string WithSelect(std::string hint, std::string_view select) {
  constexpr size_t kLongest = 1000;
  const std::string_view line = select.find("--") == std::string_view::npos ? "" : "\n";
  const std::string filled =
      "FROM (" + std::string(line) + std::string(select) + std::string(line) + ") AS s";
  for (size_t at = 0; !select.empty() && select.size() <= kLongest &&
                      (at = hint.find(kSelectPlace, at)) != std::string::npos;
       at += filled.size()) {
    hint.replace(at, kSelectPlace.size(), filled);
  }
  return hint;
}

std::optional<std::string> ConditionOfRows(const Status& status) {
  for (const Diagnostic& one : status.diagnostics()) {
    if (one.detail.starts_with(kRowsWhere)) {
      return one.detail.substr(kRowsWhere.size());
    }
  }
  return std::nullopt;
}

}  // namespace sluice
