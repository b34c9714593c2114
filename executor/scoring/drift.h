#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/row_batch.h"

namespace sluice::elastic {
class FeatureReader;
}

namespace sluice::models {
class FeaturePlan;
class NumberSpread;
struct OddCells;
}  // namespace sluice::models

namespace sluice::executor {

// How the cells of one of the model's columns compare with those of its training.
struct ColumnDrift {
  struct Cells {
    size_t count = 0;
    std::string first;  // the text of one of them
  };
  // Of a column whose numbers' spread in training is known.
  struct Numbers {
    double lowest = 0, highest = 0;  // in training
    double outside_share = 0;        // of all rows: below `lowest` or above `highest`
    bool outside = false;            // more of them than chance explains
    double mean = 0, trained_mean = 0;
    double stability_index = 0;  // models::StabilityIndex, over tenths of the training's
    bool shifted = false;        // the index is above 0.2, and than chance explains
  };

  std::string column;
  int64_t rows = 0;
  Cells odd;      // read as missing values, unlike those of the training
  Cells unknown;  // of categories that the model does not know
  double null_share = 0;
  double trained_null_share = 0;
  std::optional<Numbers> numbers;
};

// Compares the rows that a statement reads with those that its model was trained on, column by
// column. The same whatever the order of the rows, but for the last bits of means. Thread-safe.
class Drift {
 public:
  // `trained`, which outlives this, is the model's; `names` are of the columns that its transform
  // reads, in order: others' come last.
  Drift(const models::FeaturePlan& trained, const std::vector<std::string>& names);
  ~Drift();

  // The rows of the reader's last Next.
  void Add(const elastic::FeatureReader& read) EXCLUDES(mutex_);
  int64_t rows() const EXCLUDES(mutex_);
  // In the model's order.
  std::vector<ColumnDrift> Columns() const EXCLUDES(mutex_);

 private:
  // One of the model's, with what is expected of it.
  struct Input {
    size_t place = 0;  // among the reader's columns
    std::string name;
    double null_share = 0;
    const models::NumberSpread* spread = nullptr;  // null: unknown
    std::vector<double> expected;                  // shares of the bins between its bounds
  };
  struct Count {
    int64_t nulls = 0, numbers = 0, outside = 0;
    double sum = 0;
    std::vector<int64_t> bins;
    ColumnDrift::Cells odd, unknown;
  };
  static Count CountCells(const Input& input, const RowBatch::Column& cells, size_t rows);
  void AddCells(const std::vector<models::OddCells>& cells, ColumnDrift::Cells Count::*to)
      REQUIRES(mutex_);

  // Set by the constructor.
  std::vector<Input> inputs_;
  std::map<std::string, size_t> by_name_;
  mutable Mutex mutex_;
  int64_t rows_ GUARDED_BY(mutex_) = 0;
  std::vector<Count> counts_ GUARDED_BY(mutex_);  // of each input
};

}  // namespace sluice::executor
