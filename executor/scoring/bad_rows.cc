#include "executor/scoring/bad_rows.h"

#include <fmt/core.h>

#include <string>
#include <utility>
#include <vector>

#include "base/bad_rows.h"
#include "catalog/data_source.h"

namespace sluice::executor {
namespace {

// The cells of the first row, as texts.
class FirstRow final : public catalog::RowReceiver {
 public:
  Status Header(const Schema& /*schema*/) override { return OkStatus(); }
  Status Rows(const RowBatch& batch) override {
    if (cells.empty() && batch.rows > 0) {
      for (const RowBatch::Column& column : batch.columns) {
        cells.push_back(FormatValue(column.ValueAt(0), column.TypeAt(0)));
      }
    }
    return OkStatus();
  }
  std::vector<std::string> cells;
};

}  // namespace

Status WithBadRows(Status status, std::string_view select, catalog::DataSource& source) {
  const std::optional<std::string> condition = ConditionOfRows(status);
  if (!condition) {
    return status;
  }
  FirstRow counted;
  // The line breaks end a comment at the end of the SELECT.
  const Status read = source.Read(
      fmt::format("SELECT count(*), count(CASE WHEN {0} THEN 1 END), min(CASE WHEN {0} THEN "
                  "sluice_row END) FROM (SELECT s.*, row_number() OVER () AS sluice_row FROM "
                  "(\n{1}\n) AS s) AS t",
                  *condition, select),
      &counted);
  if (!read.ok() || counted.cells.size() != 3 || counted.cells[1] == "0") {
    return status;
  }
  std::string hint = status.diagnostics().back().hint;
  hint = WithSelect(fmt::format("{}{}SELECT * FROM (...) AS s WHERE {} shows them", hint,
                                hint.empty() ? "" : "; ", *condition),
                    select);
  return std::move(status)
      .Detail(fmt::format("{} of {} rows, the first of them row {} of the SELECT", counted.cells[1],
                          counted.cells[0], counted.cells[2]))
      .Hint(std::move(hint));
}

}  // namespace sluice::executor
