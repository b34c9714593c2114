#include "planner/class_query.h"

#include <fmt/core.h>

#include <charconv>

#include "catalog/data_source.h"
#include "catalog/sql/sql_text.h"
#include "catalog/sql/value_expression.h"
#include "planner/bind_select.h"

namespace sluice::planner {
namespace {

class Values final : public catalog::RowReceiver {
 public:
  explicit Values(DataType type) : type_(type) {}
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch& batch) override {
    for (size_t row = 0; row < batch.rows; ++row) {
      values.insert(Format(batch.columns[0].ValueAt(row)));
    }
    return OkStatus();
  }
  std::set<std::string> values;

 private:
  // A plain statement prints 2.50 where a training reads 2.5.
  std::string Format(const Value& value) const {
    const auto* text = std::get_if<std::string>(&value);
    double number = 0;
    if (type_ != DataType::kDouble || text == nullptr ||
        std::from_chars(text->data(), text->data() + text->size(), number).ec != std::errc()) {
      return FormatValue(value, type_);
    }
    return FormatDouble(number);
  }

  const DataType type_;
};

// Excluding more values than this takes longer than looking them up in a hash table.
constexpr size_t kMaxExcluded = 4;

// AND column <> 'value' for each of `seen`, if they are few. `differs`: the operator.
std::string Excluding(std::string_view column, std::string_view differs,
                      const std::set<std::string>& seen) {
  std::string condition;
  for (const std::string& value : seen) {
    // How the database reads a backslash inside quotes depends on its settings.
    if (seen.size() > kMaxExcluded || value.find('\\') != std::string::npos) {
      return "";
    }
    condition += fmt::format(" AND {} {} {}", column, differs,
                             catalog::QuoteText(value, catalog::Dialect::kSqlite));
  }
  return condition;
}

}  // namespace

Result<std::vector<std::string>> QueryClasses(std::string_view select, const ColumnInfo& column,
                                              const std::set<std::string>& seen, size_t limit,
                                              catalog::DataSource& source) {
  const std::string name = QuoteIdentifier(column.name);
  // In SQLite, numbers in a text column are read in the form of SQLite's own text for them.
  const bool sqlite = source.dialect() == "sqlite";
  std::string value = sqlite ? "" : catalog::ValueExpression(name, column.database_type);
  if (value.empty()) {
    value = sqlite && column.type == DataType::kText ? fmt::format("CAST({} AS TEXT)", name) : name;
  }
  // A text is compared as PostgreSQL's own, and not by what a user's operator says.
  const std::string compared = sqlite ? name
                               : column.type == DataType::kText
                                   ? fmt::format("({})::pg_catalog.text", value)
                                   : value;
  // The line breaks end a comment at the end of the SELECT.
  const std::string sql = fmt::format(
      "SELECT DISTINCT {0} FROM (\n{1}\n) AS sluice_labels WHERE {2} IS NOT NULL{3} LIMIT {4}",
      value, select, name, Excluding(compared, sqlite ? "<>" : "OPERATOR(pg_catalog.<>)", seen),
      limit + 1);
  Values found(column.type);
  RETURN_IF_ERROR(source.Read(sql, &found));
  found.values.insert(seen.begin(), seen.end());
  return std::vector<std::string>(found.values.begin(), found.values.end());
}

}  // namespace sluice::planner
