#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/row_batch.h"
#include "catalog/data_source.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"

// A database in memory for the planner's tests: tables of rows, exact statistics, SELECTs of the
// form "SELECT * | a, b FROM t [WHERE ...] [LIMIT n]" (WHERE is ignored).
namespace sluice::planner {

struct FakeTable {
  Schema schema;
  std::vector<std::vector<Value>> rows;
  // The number of rows that the statistics report: for tables too large for a test.
  int64_t claimed_rows = 0;
  bool classes_known = true;  // false: the statistics may lack values
};

class FakeModels final : public catalog::ModelStore {
 public:
  Result<catalog::ModelVersion> Put(catalog::ModelVersion model, std::string_view,
                                    bool must_be_new) override {
    if (must_be_new && models_.count(model.name) != 0) {
      return AlreadyExists("model '" + model.name + "' exists already");
    }
    std::vector<catalog::ModelVersion>& versions = models_[model.name];
    model.version = static_cast<int64_t>(versions.size()) + 1;
    model.live = true;
    versions.push_back(model);
    return model;
  }
  Result<catalog::ModelVersion> PutAndEnd(catalog::ModelVersion, std::string_view, bool,
                                          const catalog::EndOfJob&) override {
    return Unused();
  }
  Result<catalog::ModelVersion> FindFor(catalog::ModelRight, std::string_view,
                                        std::string_view name,
                                        std::optional<int64_t> version) override {
    const auto found = models_.find(std::string(name));
    if (found == models_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, versions] : models_) {
        names.push_back(known);
      }
      const auto nearest = NearestName(name, names);
      return NotFound("no model '" + std::string(name) + "'")
          .Hint(nearest ? "did you mean '" + *nearest + "'?" : "");
    }
    if (version && (*version < 1 || static_cast<size_t>(*version) > found->second.size())) {
      return NotFound("model '" + std::string(name) + "' has no version " +
                      std::to_string(*version));
    }
    return version ? found->second[static_cast<size_t>(*version - 1)] : found->second.back();
  }
  Result<std::string> LoadWeights(const catalog::ModelVersion&) override { return Unused(); }
  Result<std::vector<catalog::ModelVersion>> List() override { return Unused(); }
  Status KeepLatest(const catalog::ModelVersion&, const catalog::KeepLimits&) override {
    return Unused();
  }
  Result<std::vector<catalog::ModelVersion>> Versions(std::string_view, std::string_view) override {
    return Unused();
  }
  Status Promote(std::string_view, std::string_view, int64_t) override { return Unused(); }
  Status Rollback(std::string_view, std::string_view) override { return Unused(); }
  Status Drop(std::string_view, std::string_view, std::optional<int64_t>) override {
    return Unused();
  }
  Status Rename(std::string_view, std::string_view, std::string_view, std::string_view) override {
    return Unused();
  }
  Status CheckMayPut(std::string_view, std::string_view) override { return OkStatus(); }
  Status Grant(std::string_view, std::string_view, const std::vector<std::string>&,
               const catalog::ModelRights&) override {
    return Unused();
  }
  Status Revoke(std::string_view, std::string_view, const std::vector<std::string>&,
                const catalog::ModelRights&) override {
    return Unused();
  }

 private:
  static Status Unused() { return Internal("the planner does not call this"); }
  std::map<std::string, std::vector<catalog::ModelVersion>> models_;
};

class FakeSource final : public catalog::DataSource {
 public:
  std::map<std::string, FakeTable> tables;
  int statistics_calls = 0;
  catalog::ResultTable planned_table;  // the last argument of PlanResultTable
  Schema planned_columns;
  int class_queries = 0;
  Status statistics_error;

  std::string_view dialect() const override { return "fake"; }
  const std::string& url() const override { return url_; }
  std::string secret() const override { return ""; }

  Result<catalog::ExecuteResult> Execute(std::string_view sql, catalog::RowReceiver* receiver,
                                         std::stop_token) override {
    ++class_queries;
    constexpr std::string_view kHead = "SELECT DISTINCT \"";
    SLUICE_CHECK(sql.substr(0, kHead.size()) == kHead, "only the class query is executed");
    const std::string column(sql.substr(kHead.size(), sql.find('"', kHead.size()) - kHead.size()));
    const size_t open = sql.find("(\n") + 2;
    const Query query = ParseQuery(sql.substr(open, sql.find("\n) AS") - open));
    const FakeTable& table = tables.at(query.table);
    const size_t index = table.schema.Find(column).value();
    std::vector<Value> distinct;
    for (const auto& row : table.rows) {
      if (!IsNull(row[index]) &&
          std::find(distinct.begin(), distinct.end(), row[index]) == distinct.end()) {
        distinct.push_back(row[index]);
      }
    }
    Schema schema;
    schema.columns = {table.schema.columns[index]};
    RETURN_IF_ERROR(receiver->Header(schema));
    RowBatch batch;
    batch.Reset(schema, distinct.size());
    batch.rows = distinct.size();
    for (size_t i = 0; i < distinct.size(); ++i) {
      batch.columns[0].null[i] = 0;
      if (const auto* text = std::get_if<std::string>(&distinct[i])) {
        batch.columns[0].texts[i] = *text;
      } else if (const auto* number = std::get_if<double>(&distinct[i])) {
        batch.columns[0].doubles[i] = *number;
      } else {
        batch.columns[0].int64s[i] = std::get<int64_t>(distinct[i]);
      }
    }
    RETURN_IF_ERROR(receiver->Rows(batch));
    return catalog::ExecuteResult();
  }

  std::string Fold(std::string_view name) const override {
    std::string folded(name);
    for (char& c : folded) {
      c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    }
    return folded;
  }

  Result<Schema> Describe(std::string_view select) override {
    const Query query = ParseQuery(select);
    const auto table = tables.find(query.table);
    if (table == tables.end()) {
      const auto begin = static_cast<int64_t>(select.find(query.table));
      return TableNotFound("relation \"" + query.table + "\" does not exist")
          .At({begin, begin + static_cast<int64_t>(query.table.size())});
    }
    Schema schema;
    for (const size_t column : Columns(query, table->second)) {
      schema.columns.push_back(table->second.schema.columns[column]);
    }
    return schema;
  }

  Result<std::vector<catalog::TableName>> SourceTables(std::string_view select) override {
    return std::vector<catalog::TableName>{{"public", ParseQuery(select).table}};
  }

  Result<catalog::SelectStatistics> Statistics(std::string_view select, const Schema&,
                                               const catalog::StatisticsOptions&) override {
    ++statistics_calls;
    if (!statistics_error.ok()) {
      return statistics_error;
    }
    const Query query = ParseQuery(select);
    const FakeTable& table = tables.at(query.table);
    catalog::SelectStatistics statistics;
    const size_t rows = std::min(table.rows.size(), query.limit);
    statistics.rows = table.claimed_rows > 0 ? table.claimed_rows : static_cast<int64_t>(rows);
    statistics.exact_rows = table.claimed_rows == 0;
    const std::vector<size_t> columns = Columns(query, table);
    for (size_t row = 0; row < std::min<size_t>(rows, 1000); ++row) {
      std::vector<Value> cells;
      for (const size_t column : columns) {
        cells.push_back(table.rows[row][column]);
      }
      statistics.sample.push_back(std::move(cells));
    }
    for (const size_t column : columns) {
      statistics.columns.push_back(StatisticsOf(table, column, rows));
    }
    return statistics;
  }

  Result<catalog::CutEstimate> EstimateCut(std::string_view select,
                                           const catalog::DatasetOptions& options) override {
    const FakeTable& table = tables.at(ParseQuery(select).table);
    const int64_t rows =
        table.claimed_rows > 0 ? table.claimed_rows : static_cast<int64_t>(table.rows.size());
    if (rows <= options.rows_per_shard) {
      return catalog::CutEstimate{"whole", rows, 1};
    }
    return catalog::CutEstimate{"ctid ranges", rows,
                                (rows + options.rows_per_shard - 1) / options.rows_per_shard};
  }

  Result<std::optional<catalog::TableName>> ResolveTable(const catalog::TableName& table) override {
    const bool there = tables.count(table.name) != 0;
    return there ? std::optional<catalog::TableName>({"public", table.name}) : std::nullopt;
  }
  Result<catalog::ResultPlan> PlanResultTable(const catalog::ResultTable& table,
                                              const Schema* columns) override {
    planned_table = table;
    planned_columns = columns == nullptr ? Schema() : *columns;
    const bool there = tables.count(table.name.name) != 0;
    return catalog::ResultPlan{
        {table.name.schema.empty() ? "public" : table.name.schema, table.name.name},
        there ? catalog::ResultAction::kRefill : catalog::ResultAction::kMake};
  }

  Result<std::unique_ptr<catalog::Dataset>> OpenDataset(std::string_view,
                                                        const catalog::DatasetOptions&) override {
    return Internal("the planner reads no dataset");
  }
  Result<std::unique_ptr<catalog::ShardReader>> OpenReader(const catalog::DatasetSpec&) override {
    return Internal("the planner reads no dataset");
  }
  Result<std::unique_ptr<catalog::TableWriter>> OpenWriter(const catalog::ResultTable&,
                                                           const Schema&) override {
    return Internal("the planner writes nothing");
  }
  Status AppendRows(const catalog::TableName&, const Schema&, const RowBatch&) override {
    return Internal("the planner writes nothing");
  }
  catalog::ModelStore& models() { return models_; }

 private:
  struct Query {
    std::vector<std::string> columns;  // empty: *
    std::string table;
    size_t limit = SIZE_MAX;
  };

  static Query ParseQuery(std::string_view select) {
    std::vector<std::string> words;
    std::string word;
    for (const char c : std::string(select) + " ") {
      if (std::isspace(static_cast<unsigned char>(c)) != 0 || c == ',') {
        if (!word.empty()) {
          words.push_back(std::exchange(word, ""));
        }
      } else {
        word += c;
      }
    }
    const auto is = [](const std::string& text, std::string_view keyword) {
      Schema schema;
      schema.columns.push_back({text, DataType::kText, ""});
      return schema.Find(keyword).has_value();
    };
    Query query;
    size_t at = 1;
    for (; at < words.size() && !is(words[at], "from"); ++at) {
      if (words[at] != "*") {
        query.columns.push_back(words[at]);
      }
    }
    query.table = at + 1 < words.size() ? words[at + 1] : "";
    for (; at + 1 < words.size(); ++at) {
      if (is(words[at], "limit")) {
        query.limit = std::stoul(words[at + 1]);
      }
    }
    return query;
  }

  static std::vector<size_t> Columns(const Query& query, const FakeTable& table) {
    std::vector<size_t> columns;
    if (query.columns.empty()) {
      for (size_t i = 0; i < table.schema.columns.size(); ++i) {
        columns.push_back(i);
      }
    }
    for (const std::string& name : query.columns) {
      columns.push_back(table.schema.Find(name).value());
    }
    return columns;
  }

  static catalog::ColumnStatistics StatisticsOf(const FakeTable& table, size_t column,
                                                size_t rows) {
    catalog::ColumnStatistics statistics;
    const DataType type = table.schema.columns[column].type;
    statistics.exact = table.claimed_rows == 0;
    statistics.all_values = table.classes_known;
    std::map<std::string, int64_t> counts;
    std::vector<double> numbers;
    size_t nulls = 0;
    for (size_t row = 0; row < rows; ++row) {
      const Value& cell = table.rows[row][column];
      if (IsNull(cell)) {
        ++nulls;
        continue;
      }
      ++counts[FormatValue(cell, type)];
      if (const auto* flag = std::get_if<bool>(&cell)) {
        numbers.push_back(*flag ? 1 : 0);
      } else if (const auto* integer = std::get_if<int64_t>(&cell)) {
        numbers.push_back(static_cast<double>(*integer));
      } else if (const auto* number = std::get_if<double>(&cell)) {
        numbers.push_back(*number);
      }
    }
    statistics.null_fraction =
        rows == 0 ? 0 : static_cast<double>(nulls) / static_cast<double>(rows);
    statistics.distinct = static_cast<double>(counts.size());
    for (const auto& [text, count] : counts) {
      statistics.common_values.emplace_back(text,
                                            static_cast<double>(count) / static_cast<double>(rows));
    }
    std::stable_sort(statistics.common_values.begin(), statistics.common_values.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (statistics.common_values.size() > 1000) {
      statistics.common_values.resize(1000);
      statistics.all_values = false;
    }
    if (!numbers.empty()) {
      statistics.has_range = true;
      statistics.min = *std::min_element(numbers.begin(), numbers.end());
      statistics.max = *std::max_element(numbers.begin(), numbers.end());
      for (const double number : numbers) {
        statistics.mean += number / static_cast<double>(numbers.size());
      }
      for (const double number : numbers) {
        statistics.standard_deviation += (number - statistics.mean) * (number - statistics.mean) /
                                         static_cast<double>(numbers.size());
      }
      statistics.standard_deviation = std::sqrt(statistics.standard_deviation);
    }
    return statistics;
  }

  std::string url_ = "fake:";
  FakeModels models_;
};

// A column of a test table and its cell in each row.
inline ColumnInfo ColumnOf(std::string name, DataType type) {
  return {std::move(name), type, std::string(DataTypeName(type))};
}

// A small census: numbers, texts, NULLs, a text label with two classes.
inline FakeTable SmallCensus(int64_t rows) {
  FakeTable table;
  table.schema.columns = {ColumnOf("age", DataType::kInt64), ColumnOf("workclass", DataType::kText),
                          ColumnOf("hours", DataType::kDouble),
                          ColumnOf("married", DataType::kBool),
                          ColumnOf("income", DataType::kText)};
  const char* classes[] = {"Private", "Private", "Private", "State-gov", "Self-emp", "Never"};
  for (int64_t i = 0; i < rows; ++i) {
    Value work = std::string(classes[i % 6]);
    if (i % 10 == 9) {
      work = std::monostate();
    }
    table.rows.push_back({Value(20 + i % 40), work, Value(static_cast<double>(i % 7) + 0.5),
                          Value(i % 2 == 0), Value(std::string(i % 4 == 3 ? ">50K" : "<=50K"))});
  }
  return table;
}

// The same without the rows that contain NULL.
inline FakeTable FullCensus(int64_t rows) {
  FakeTable table = SmallCensus(rows);
  std::erase_if(table.rows, [](const std::vector<Value>& row) { return IsNull(row[1]); });
  return table;
}

}  // namespace sluice::planner
