#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "models/features/feature_transform.h"

namespace sluice::executor {

class ResultSink;

// The cells of a statement's rows that were unlike those of the training: read as missing values,
// or of categories that the model does not know. Thread-safe.
class OddCellCount {
 public:
  void Add(const models::FeatureBatch& batch) EXCLUDES(mutex_);
  // A notice for each column that has some.
  void TellTo(ResultSink& sink) const EXCLUDES(mutex_);

 private:
  struct Seen {
    size_t cells = 0;
    std::string first;
  };
  using Columns = std::map<std::string, Seen>;
  static void Count(const std::vector<models::OddCells>& cells, Columns* columns);

  mutable Mutex mutex_;
  size_t rows_ GUARDED_BY(mutex_) = 0;
  Columns missing_ GUARDED_BY(mutex_);
  Columns unknown_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
