#include "planner/class_query.h"

#include <fmt/core.h>

#include "catalog/data_source.h"
#include "catalog/sql_text.h"
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
      values.insert(FormatValue(batch.columns[0].ValueAt(row), type_));
    }
    return OkStatus();
  }
  std::set<std::string> values;

 private:
  DataType type_ = DataType::kText;
};

// Comparing a row with more values takes longer than finding its own in a hash table.
constexpr size_t kMostExcluded = 4;

// AND column <> 'value' for each of `seen`, where they are few.
std::string Excluding(std::string_view column, const std::set<std::string>& seen) {
  std::string condition;
  for (const std::string& value : seen) {
    // What a backslash in quotes means is a setting of the database.
    if (seen.size() > kMostExcluded || value.find('\\') != std::string::npos) {
      return "";
    }
    condition +=
        fmt::format(" AND {} <> {}", column, catalog::QuoteText(value, catalog::Dialect::kSqlite));
  }
  return condition;
}

}  // namespace

Result<std::vector<std::string>> QueryClasses(std::string_view select, std::string_view column,
                                              const std::set<std::string>& seen, size_t limit,
                                              catalog::DataSource& source) {
  const std::string name = QuoteIdentifier(column);
  // The line breaks end a comment that the SELECT may end with.
  const std::string sql = fmt::format(
      "SELECT DISTINCT {0} FROM (\n{1}\n) AS sluice_labels WHERE {0} IS NOT NULL{2} LIMIT {3}",
      name, select, Excluding(name, seen), limit + 1);
  Values found;
  RETURN_IF_ERROR(source.Read(sql, &found));
  found.values.insert(seen.begin(), seen.end());
  return std::vector<std::string>(found.values.begin(), found.values.end());
}

}  // namespace sluice::planner
