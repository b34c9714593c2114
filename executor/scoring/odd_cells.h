#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/mutex.h"
#include "models/features/feature_transform.h"

namespace sluice::executor {

class ResultSink;

// The cells of a statement's rows that were read as missing values (models::OddCells). Thread-safe.
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
  mutable Mutex mutex_;
  std::map<std::string, Seen> columns_ GUARDED_BY(mutex_);
};

}  // namespace sluice::executor
