#pragma once

#include <string>
#include <vector>

#include "executor/executor.h"

namespace sluice {

// Records a statement's whole answer. Optionally stops the statement at its first progress.
class RecordingSink final : public executor::ResultSink {
 public:
  Status Header(const Schema& header) override {
    schema = header;
    return OkStatus();
  }
  Status Rows(const RowBatch& batch) override {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::vector<Value> row;
      for (const RowBatch::Column& column : batch.columns) {
        row.push_back(column.ValueAt(r));
      }
      rows.push_back(std::move(row));
    }
    return OkStatus();
  }
  void Notice(const std::string& message) override {
    notices.push_back(message);
    if (on_notice) {
      on_notice(message);
    }
  }
  void Progress(const elastic::Progress& now) override {
    progress.push_back(now);
    if (on_progress) {
      on_progress();
    }
  }
  void Done(const std::string& done) override { tag = done; }

  // The value of a column in the only row.
  Value Cell(const std::string& column) const {
    const auto found = schema.Find(column);
    return found && rows.size() == 1 ? rows[0][*found] : Value(std::monostate{});
  }
  double Number(const std::string& column) const {
    const Value value = Cell(column);
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      return static_cast<double>(*integer);
    }
    return std::get<double>(value);
  }

  Schema schema;
  std::vector<std::vector<Value>> rows;
  std::vector<std::string> notices;
  std::vector<elastic::Progress> progress;
  std::string tag;
  std::function<void()> on_progress;
  std::function<void(const std::string&)> on_notice;
};

}  // namespace sluice
