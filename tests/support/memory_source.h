#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"
#include "catalog/job_store.h"

namespace sluice::testing {

// An in-memory table of numbers behind the catalog's interface: just what the engine needs to
// train. Thread-safe for readers.
class MemorySource final : public catalog::DataSource {
 public:
  MemorySource(std::vector<std::string> columns, std::vector<std::vector<double>> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}

  catalog::DatasetSpec Spec(int64_t rows_per_shard) const {
    catalog::DatasetSpec spec;
    for (const std::string& name : columns_) {
      catalog::ColumnDescription* column = spec.add_columns();
      column->set_name(name);
      column->set_type(static_cast<int>(DataType::kDouble));
    }
    const auto rows = static_cast<int64_t>(rows_.size());
    for (int64_t begin = 0; begin < rows; begin += rows_per_shard) {
      catalog::ShardRange* shard = spec.add_shards();
      shard->set_begin(begin);
      shard->set_end(std::min(rows, begin + rows_per_shard));
      shard->set_estimated_rows(shard->end() - shard->begin());
    }
    spec.set_estimated_rows(rows);
    return spec;
  }
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  // Number of rows read by all readers.
  int64_t rows_read() const { return rows_read_; }
  // The next `times` reads of the shard that begins at `begin` fail.
  void FailReads(int64_t begin, int times, Status status) {
    fail_begin_ = begin;
    fail_status_ = std::move(status);
    fail_times_ = times;
  }

  // Called in the middle of each read.
  void OnRead(std::function<void()> on_read) { on_read_ = std::move(on_read); }

  std::string_view dialect() const override { return "memory"; }
  const std::string& url() const override { return url_; }
  std::string secret() const override { return ""; }
  Result<std::unique_ptr<catalog::ShardReader>> OpenReader(const catalog::DatasetSpec&) override {
    return std::unique_ptr<catalog::ShardReader>(std::make_unique<Reader>(*this));
  }

  Result<catalog::ExecuteResult> Execute(std::string_view, catalog::RowReceiver*,
                                         std::stop_token) override {
    return Nothing();
  }
  std::string Fold(std::string_view name) const override { return std::string(name); }
  Result<Schema> Describe(std::string_view) override { return Nothing(); }
  Result<std::vector<catalog::TableName>> SourceTables(std::string_view) override {
    return Nothing();
  }
  Result<catalog::SelectStatistics> Statistics(std::string_view, const Schema&,
                                               const catalog::StatisticsOptions&) override {
    return Nothing();
  }
  Result<catalog::CutEstimate> EstimateCut(std::string_view,
                                           const catalog::DatasetOptions&) override {
    return Nothing();
  }
  Result<std::unique_ptr<catalog::Dataset>> OpenDataset(std::string_view,
                                                        const catalog::DatasetOptions&) override {
    return Nothing();
  }
  Result<std::optional<catalog::TableName>> ResolveTable(const catalog::TableName&) override {
    return Nothing();
  }
  Result<catalog::ResultPlan> PlanResultTable(const catalog::ResultTable&, const Schema*) override {
    return Nothing();
  }
  Result<std::unique_ptr<catalog::TableWriter>> OpenWriter(const catalog::ResultTable&,
                                                           const Schema&) override {
    return Nothing();
  }
  Status AppendRows(const catalog::TableName&, const Schema&, const RowBatch&) override {
    return Nothing();
  }

 private:
  static Status Nothing() { return Unimplemented("a source in memory can only be read"); }

  class Stream final : public catalog::RowStream {
   public:
    Stream(MemorySource& source, int64_t begin, int64_t end, std::vector<size_t> columns)
        : source_(source), next_(begin), end_(end), columns_(std::move(columns)) {
      begin_ = begin;
    }
    Status Next(size_t max_rows, RowBatch* batch) override {
      if (source_.on_read_) {
        source_.on_read_();
      }
      if (source_.fail_begin_ == begin_ && source_.fail_times_.fetch_sub(1) > 0) {
        return source_.fail_status_;
      }
      const auto count =
          static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(max_rows), end_ - next_));
      batch->rows = count;
      batch->columns.resize(columns_.size());
      for (size_t c = 0; c < columns_.size(); ++c) {
        RowBatch::Column& column = batch->columns[c];
        column.type = DataType::kDouble;
        column.null.assign(count, 0);
        column.doubles.resize(count);
        for (size_t row = 0; row < count; ++row) {
          column.doubles[row] = source_.rows_[static_cast<size_t>(next_) + row][columns_[c]];
        }
      }
      next_ += static_cast<int64_t>(count);
      source_.rows_read_ += static_cast<int64_t>(count);
      return Status();
    }

   private:
    MemorySource& source_;
    int64_t begin_ = 0, next_, end_;
    const std::vector<size_t> columns_;
  };

  class Reader final : public catalog::ShardReader {
   public:
    explicit Reader(MemorySource& source) : source_(source) {}
    Result<std::unique_ptr<catalog::RowStream>> Read(const catalog::ShardRange& shard,
                                                     const std::vector<size_t>& columns,
                                                     const catalog::CopiedColumns&) override {
      return std::unique_ptr<catalog::RowStream>(
          std::make_unique<Stream>(source_, shard.begin(), shard.end(), columns));
    }

   private:
    MemorySource& source_;
  };

  const std::string url_ = "memory:";
  const std::vector<std::string> columns_;
  const std::vector<std::vector<double>> rows_;
  std::atomic<int64_t> rows_read_ = 0;
  std::function<void()> on_read_;
  int64_t fail_begin_ = -1;
  std::atomic<int> fail_times_ = 0;
  Status fail_status_;
};

}  // namespace sluice::testing
