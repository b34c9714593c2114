#pragma once

#include <deque>
#include <string>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"

namespace sluice::plan {
class PredictPlan;
}

namespace sluice::models {
class LabelPlan;
}

namespace sluice::executor {

// Turns scores into the columns that a PREDICT adds to each row: the predicted label in the label's
// own type (a CSV label's as CSV text), then the extra outputs ("probability" of that label,
// "probabilities" of all classes as comma-separated text in class order). Not thread-safe.
class PredictionColumns {
 public:
  static Result<PredictionColumns> Make(const plan::PredictPlan& plan,
                                        const models::LabelPlan& label, size_t outputs);

  const std::vector<ColumnInfo>& columns() const { return columns_; }
  // Writes rows [0, rows) of its columns into `batch`, from column `first` on; the batch has room.
  void Fill(const std::vector<float>& scores, size_t rows, RowBatch* batch, size_t first);

 private:
  void FillLabel(const float* scores, size_t row, RowBatch::Column* column);
  std::string CsvOf(const float* scores) const;
  size_t PredictedClass(const float* scores) const;

  std::vector<ColumnInfo> columns_;
  size_t outputs_ = 1;
  bool classifier_ = false;
  bool vector_ = false;
  std::vector<std::string> classes_;
  std::vector<int64_t> class_integers_;  // where the label's type is an integer or boolean
  std::vector<double> class_numbers_;
  std::deque<std::string> texts_;  // what the batch's texts point into, until the next Fill
};

}  // namespace sluice::executor
