#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "executor/scoring/scorer.h"

namespace sluice::executor {

struct Context;

// Models that were used lately, loaded, for statements of few rows, which take less time than
// loading a model does. Thread-safe.
class ScorerCache {
 public:
  // Of stored weights and plans, which take up to three times as much when they are loaded: a
  // gateway's memory is for trainings.
  static constexpr int64_t kMostBytes = int64_t{32} << 20;

  explicit ScorerCache(int64_t most_bytes = kMostBytes) : most_bytes_(most_bytes) {}
  // A scorer of `version`, as Scorer::Load makes it. The caller has found the version in the
  // catalog just now: whether it still exists, and who may use it, is not decided here.
  Result<std::unique_ptr<Scorer>> Load(catalog::ModelStore& models,
                                       const catalog::ModelVersion& version, int64_t memory_bytes);

 private:
  struct Entry {
    std::string key;  // the weights' digest, and the plan
    int64_t bytes = 0;
    std::unique_ptr<const Scorer> scorer;
  };

  const int64_t most_bytes_;
  Mutex mutex_;
  std::list<Entry> entries_ GUARDED_BY(mutex_);  // the one used last comes first
  int64_t bytes_ GUARDED_BY(mutex_) = 0;
};

// A scorer of the version, of the context's cache if it has one. `label`: see Scorer::Load.
Result<std::unique_ptr<Scorer>> LoadScorer(const Context& context,
                                           const catalog::ModelVersion& version,
                                           const std::string& label = "");

}  // namespace sluice::executor
