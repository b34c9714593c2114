#pragma once

#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::executor {

class ResultSink;

// A small answer built cell by cell: the one row of a TRAIN, the lines of an EXPLAIN.
class ResultRows {
 public:
  explicit ResultRows(Schema schema);

  const Schema& schema() const { return schema_; }
  const std::vector<std::vector<Value>>& rows() const { return rows_; }
  // `row` has one value per column, of the column's type or NULL.
  void Add(std::vector<Value> row);
  // The rows as one batch; its texts point into this object.
  RowBatch ToBatch() const;
  // Header and rows.
  Status SendTo(ResultSink& sink) const;

 private:
  Schema schema_;
  std::vector<std::vector<Value>> rows_;
};

}  // namespace sluice::executor
