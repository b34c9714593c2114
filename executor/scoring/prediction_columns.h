#pragma once

#include <deque>
#include <optional>
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
// own type (for a CSV label, CSV text; for several
// quantiles, a column for each), then the extra outputs: the probability of a class, or that of the
// second of two, else of the predicted label. Not thread-safe.
class PredictionColumns {
 public:
  static Result<PredictionColumns> Make(const plan::PredictPlan& plan,
                                        const models::LabelPlan& label, size_t outputs,
                                        std::optional<double> threshold);

  const std::vector<ColumnInfo>& columns() const { return columns_; }
  // Writes rows [0, rows) of its columns into `batch`, starting at column `first`; the batch must
  // have room.
  void Fill(const std::vector<double>& scores, size_t rows, RowBatch* batch, size_t first);

 private:
  void FillLabel(const double* scores, size_t row, RowBatch::Column* column);
  std::string CsvOf(const double* scores) const;
  size_t PredictedClass(const double* scores) const;
  double ProbabilityOf(const double* scores, size_t name) const;

  std::vector<ColumnInfo> columns_;
  size_t outputs_ = 1;
  std::optional<double> threshold_;  // of the second class of two; nullopt: the likelier class
  // For each extra output, the class whose probability it is; nullopt: the second of two classes,
  // else the predicted one.
  std::vector<std::optional<size_t>> classes_of_outputs_;
  bool classifier_ = false;
  bool vector_ = false;
  bool quantiles_ = false;  // each output is a column
  std::vector<std::string> classes_;
  std::vector<int64_t> class_integers_;  // if the label's type is integer or boolean
  std::vector<double> class_numbers_;
  std::deque<std::string> texts_;  // the batch's texts point into it, until the next Fill
};

}  // namespace sluice::executor
