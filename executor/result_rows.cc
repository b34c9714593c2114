#include "executor/result_rows.h"

#include "executor/executor.h"

namespace sluice::executor {

ResultRows::ResultRows(Schema schema) : schema_(std::move(schema)) {}

void ResultRows::Add(std::vector<Value> row) {
  SLUICE_CHECK(row.size() == schema_.columns.size(), "one value per column");
  rows_.push_back(std::move(row));
}

RowBatch ResultRows::ToBatch() const {
  RowBatch batch;
  batch.Reset(schema_, rows_.size());
  batch.rows = rows_.size();
  for (size_t c = 0; c < schema_.columns.size(); ++c) {
    RowBatch::Column& column = batch.columns[c];
    for (size_t r = 0; r < rows_.size(); ++r) {
      const Value& value = rows_[r][c];
      column.null[r] = IsNull(value) ? 1 : 0;
      if (const auto* flag = std::get_if<bool>(&value)) {
        column.int64s[r] = *flag ? 1 : 0;
      } else if (const auto* integer = std::get_if<int64_t>(&value)) {
        column.int64s[r] = *integer;
      } else if (const auto* number = std::get_if<double>(&value)) {
        column.doubles[r] = *number;
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        column.texts[r] = *text;
      }
    }
  }
  return batch;
}

Status ResultRows::SendTo(ResultSink& sink) const {
  RETURN_IF_ERROR(sink.Header(schema_));
  return sink.Rows(ToBatch());
}

}  // namespace sluice::executor
