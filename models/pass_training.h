#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "models/features/feature_transform.h"

// Models that are found by passes over all rows, which may lie on many workers. A search asks one
// question after the other; each worker adds up what its shards of the rows answer. The texts of
// passes and answers are for processes of the same build.
namespace sluice::models {

class ModelSpec;

// What a pass adds up. `step` is enough for a worker that has followed all passes before it;
// `whole` makes it for any other. It may be called on any thread, also when later passes have
// begun.
struct Pass {
  std::string step;
  std::function<std::string()> whole;
};

// The answers to a pass of shards that together are all rows, each of them once; of answers that
// may not be merged, in the order of the shards.
using PassRun = std::function<Result<std::vector<std::string>>(const Pass&)>;

// How a training goes on elsewhere if it is lost.
struct TrainingMemory {
  // What an earlier training over the same rows has remembered, in order; empty: there was none.
  std::vector<std::string> remembered = {};
  std::function<void(std::string)> remember = {};  // null: nobody goes on
};

// How a search does its passes, and how another one goes on if this one is lost.
struct PassSearch {
  PassRun run;
  TrainingMemory memory = {};
};

// A worker's part of passes. Not thread-safe.
class PassSums {
 public:
  static Result<std::unique_ptr<PassSums>> Make(const ModelSpec& spec);
  virtual ~PassSums() = default;

  // A pass begins, of which nothing has been added up yet. False: it is a step from another pass
  // than the last one here, and the whole is needed.
  virtual Result<bool> Begin(const std::string& pass) = 0;
  // Whether Add needs the rows of a shard: else what is known of them is enough.
  virtual bool NeedsRows(int64_t shard) const = 0;
  // Adds the answer of a shard. `training`, `held_out`: its rows; null unless it NeedsRows.
  virtual Status Add(int64_t shard, const FeatureBatch* training, const FeatureBatch* held_out) = 0;
  // The answer of all shards that were added since the pass began, or since the last Take; of
  // linear models, of the last shard.
  virtual std::string Take() = 0;
};

}  // namespace sluice::models
