#include "executor/scoring/scorer_cache.h"

#include <algorithm>
#include <utility>

#include "catalog/catalog.h"
#include "executor/executor.h"

namespace sluice::executor {
std::shared_ptr<ScorerCache> MakeScorerCache() {
  return std::make_shared<ScorerCache>();
}

Result<std::unique_ptr<Scorer>> LoadScorer(const Context& context,
                                           const catalog::ModelVersion& version,
                                           const std::string& label) {
  catalog::ModelStore& models = context.catalog.models();
  return context.scorers == nullptr || !label.empty()
             ? Scorer::Load(models, version, context.memory_bytes(), label)
             : context.scorers->Load(models, version, context.memory_bytes());
}

Result<std::unique_ptr<Scorer>> ScorerCache::Load(catalog::ModelStore& models,
                                                  const catalog::ModelVersion& version,
                                                  int64_t memory_bytes) {
  std::string key = version.weights_sha256 + version.plan;
  {
    const MutexLock lock(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&key](const Entry& entry) { return entry.key == key; });
    if (found != entries_.end()) {
      entries_.splice(entries_.begin(), entries_, found);
      return found->scorer->Another();
    }
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> loaded, Scorer::Load(models, version, memory_bytes));
  const auto bytes = version.weights_bytes + static_cast<int64_t>(version.plan.size());
  if (bytes > most_bytes_) {
    return loaded;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Scorer> mine, loaded->Another());
  const MutexLock lock(mutex_);
  entries_.push_front({std::move(key), bytes, std::move(loaded)});
  bytes_ += bytes;
  while (bytes_ > most_bytes_) {
    bytes_ -= entries_.back().bytes;
    entries_.pop_back();
  }
  return mine;
}

}  // namespace sluice::executor
