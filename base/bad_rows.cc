#include "base/bad_rows.h"

#include "base/sql_name.h"

namespace sluice {
namespace {

constexpr std::string_view kRowsWhere = "in rows WHERE ";

}  // namespace

std::string RowsWhere(std::string_view condition) {
  return std::string(kRowsWhere) + std::string(condition);
}

std::string RowsWithText(std::string_view column, std::string_view cell) {
  constexpr size_t kLongest = 200;
  // How a database reads a backslash inside quotes depends on its settings.
  if (cell.size() > kLongest ||
      cell.find_first_of(std::string_view("\\\0", 2)) != std::string::npos) {
    return "";
  }
  std::string quoted;
  for (const char c : cell) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return RowsWhere(SqlName(column) + " = '" + quoted + "'");
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
