#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/job_store.h"

namespace sluice {

// Wraps another source and measures the time spent in it while a statement is planned. For one
// thread.
class ClockedSource final : public catalog::DataSource {
 public:
  explicit ClockedSource(catalog::DataSource& source) : source_(source) {}

  double seconds() const { return seconds_; }

  std::string_view dialect() const override { return source_.dialect(); }
  const std::string& url() const override { return source_.url(); }
  std::string secret() const override { return source_.secret(); }
  Result<catalog::ExecuteResult> Execute(std::string_view sql, catalog::RowReceiver* receiver,
                                         std::stop_token stop) override {
    return Clocked([&] { return source_.Execute(sql, receiver, stop); });
  }
  std::string Fold(std::string_view name) const override { return source_.Fold(name); }
  Result<Schema> Describe(std::string_view select) override {
    return Clocked([&] { return source_.Describe(select); });
  }
  Status DescribeCopies(std::string_view select, Schema* schema) override {
    return Clocked([&] { return source_.DescribeCopies(select, schema); });
  }
  Status Read(std::string_view select, catalog::RowReceiver* receiver) override {
    return Clocked([&] { return source_.Read(select, receiver); });
  }
  Result<std::vector<catalog::TableName>> SourceTables(std::string_view select) override {
    return Clocked([&] { return source_.SourceTables(select); });
  }
  Result<catalog::SelectStatistics> Statistics(std::string_view select, const Schema& schema,
                                               const catalog::StatisticsOptions& options) override {
    return Clocked([&] { return source_.Statistics(select, schema, options); });
  }
  Result<catalog::CutEstimate> EstimateCut(std::string_view select,
                                           const catalog::DatasetOptions& options) override {
    return Clocked([&] { return source_.EstimateCut(select, options); });
  }
  Result<std::unique_ptr<catalog::Dataset>> OpenDataset(
      std::string_view select, const catalog::DatasetOptions& options) override {
    return Clocked([&] { return source_.OpenDataset(select, options); });
  }
  Result<std::unique_ptr<catalog::ShardReader>> OpenReader(
      const catalog::DatasetSpec& spec) override {
    return Clocked([&] { return source_.OpenReader(spec); });
  }
  Result<std::optional<catalog::TableName>> ResolveTable(const catalog::TableName& table) override {
    return Clocked([&] { return source_.ResolveTable(table); });
  }
  Result<catalog::ResultPlan> PlanResultTable(const catalog::ResultTable& table,
                                              const Schema* columns) override {
    return Clocked([&] { return source_.PlanResultTable(table, columns); });
  }
  Result<std::unique_ptr<catalog::TableWriter>> OpenWriter(const catalog::ResultTable& table,
                                                           const Schema& schema) override {
    return Clocked([&] { return source_.OpenWriter(table, schema); });
  }
  Status AppendRows(const catalog::TableName& table, const Schema& schema,
                    const RowBatch& batch) override {
    return Clocked([&] { return source_.AppendRows(table, schema, batch); });
  }

 private:
  template <typename Call>
  std::invoke_result_t<Call> Clocked(const Call& call) {
    const auto begin = std::chrono::steady_clock::now();
    auto result = call();
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return result;
  }

  catalog::DataSource& source_;
  double seconds_ = 0;
};

}  // namespace sluice
