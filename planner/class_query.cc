#include "planner/class_query.h"

#include <fmt/core.h>

#include "catalog/data_source.h"
#include "planner/bind_select.h"

namespace sluice::planner {
namespace {

class Values final : public catalog::RowReceiver {
 public:
  Status Header(const Schema& schema) override {
    type_ = schema.columns.empty() ? DataType::kText : schema.columns[0].type;
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      values.push_back(FormatValue(batch.columns[0].ValueAt(row), type_));
    }
    return OkStatus();
  }
  std::vector<std::string> values;

 private:
  DataType type_ = DataType::kText;
};

}  // namespace

Result<std::vector<std::string>> QueryClasses(std::string_view select, std::string_view column,
                                              size_t limit, catalog::DataSource& source) {
  const std::string name = QuoteIdentifier(column);
  // The line breaks end a comment that the SELECT may end with.
  const std::string sql = fmt::format(
      "SELECT DISTINCT {0} FROM (\n{1}\n) AS sluice_labels WHERE {0} IS NOT NULL LIMIT "
      "{2}",
      name, select, limit + 1);
  Values values;
  const Result<catalog::ExecuteResult> result = source.Execute(sql, &values, std::stop_token());
  if (!result.ok()) {
    return result.status();
  }
  return std::move(values.values);
}

}  // namespace sluice::planner
