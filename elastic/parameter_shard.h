#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/batch_window.h"
#include "elastic/embedding_slab.h"
#include "elastic/synchronous_step.h"
#include "models/model.h"
#include "models/optimizer.h"

namespace sluice::models {
class ModelSpec;
}

namespace sluice::elastic {

// Which part of the parameters a server holds: of every dense tensor an even slice, of every table
// the rows that hash to it. With one server: everything.
struct Placement {
  uint32_t index = 0;
  uint32_t count = 1;

  // The half-open range of a dense tensor's elements.
  std::pair<size_t, size_t> Slice(size_t size) const;
  static uint32_t ServerOf(size_t table, int64_t id, uint32_t servers);
};

// Names a batch: its rows are the same for whoever computes it.
struct BatchIdentity {
  uint32_t epoch = 1;
  int64_t shard = 0;
  int64_t batch = 0;  // in synchronous mode also the step of the round
  uint32_t attempt = 1;
  int64_t round = 0;
  uint32_t lane = 0;
  uint32_t lanes = 0;  // 0: asynchronous
  int64_t range = 0;   // first batch of the range of the shard that the lease is of
};

struct PushRequest {
  BatchIdentity batch;
  int64_t version = 0;  // that the gradient was computed from
  double weight = 0;    // sum of the batch's row weights
  bool end = false;     // synchronous: the lane has no such batch; there is no gradient
  std::vector<std::span<const float>> dense;
  struct Rows {
    std::span<const int64_t> ids;
    std::span<const float> values;
  };
  std::vector<Rows> tables;
};

struct PullRequest {
  BatchIdentity batch;      // synchronous: the step that the values are for
  bool evaluation = false;  // whatever there is, now
  std::vector<std::span<const int64_t>> tables;
};

// Where pulled values go. Empty `dense`: not wanted.
struct PullTarget {
  std::vector<float*> dense;
  std::vector<float*> tables;
};

// One parameter server's parameters and the rules by which they change. Thread-safe: a gradient is
// applied as a whole or not at all, and a pull sees all of one or nothing of it.
class ParameterShard {
 public:
  struct Options {
    Placement placement;
    bool synchronous = false;
  };
  // `base`: values to continue from (whole tensors and tables; each server takes its part).
  static Result<std::unique_ptr<ParameterShard>> Make(const models::ModelSpec& spec,
                                                      const models::Network& network,
                                                      const Options& options,
                                                      const models::NetworkWeights* base);
  ~ParameterShard();

  // Applies the batch, or finds that it has been applied before: OK both times. Errors: Aborted
  // (the lease belongs to someone else now), InvalidArgument (unknown row, other shape, a gradient
  // that is not finite); then nothing has changed.
  Status Push(const PushRequest& request);

  // Fills the target; answers the version of what it has read. In synchronous mode waits up to
  // `wait_seconds` for the step before to close, then answers DeadlineExceeded.
  Result<int64_t> Pull(const PullRequest& request, const PullTarget& target, double wait_seconds);

  // The live dense values, for a worker in the same thread that is the only one to push.
  std::vector<const float*> LiveDense() const;

  int64_t AppliedBatches(uint32_t epoch, int64_t shard) const;
  int64_t version() const;
  int64_t rows() const;  // of all tables

  // The best weights so far are kept beside the live ones (early stopping goes back to them).
  void KeepBest();
  // This server's part; the kept ones where there are any.
  models::NetworkWeights Export() const;
  // Wakes every waiting Pull, which then answers Cancelled.
  void Close();

 private:
  struct Tensor;
  struct Position {  // of the open step
    uint32_t epoch = 0;
    int64_t round = 0;
    int64_t step = 0;
    bool over = true;  // the round has ended; the next push opens another
  };
  ParameterShard(const models::Network& network, const Options& options, uint64_t seed);

  Status CheckShape(const PushRequest& request) const;
  Status CheckIds(size_t table, std::span<const int64_t> ids) const;
  Status PushLane(const PushRequest& request) REQUIRES(mutex_);
  void Apply(const std::vector<std::span<const float>>& dense,
             const std::vector<PushRequest::Rows>& tables, float rate_scale) REQUIRES(mutex_);
  void CloseStep() REQUIRES(mutex_);
  enum class Ready { kNow, kBefore, kNotYet };
  Ready StepReady(const BatchIdentity& batch) const REQUIRES(mutex_);
  void ReadBefore(const PullRequest& request, const PullTarget& target) const REQUIRES(mutex_);
  models::NetworkWeights ExportLive() const REQUIRES(mutex_);

  const Options options_;
  const uint64_t seed_;
  std::unique_ptr<models::Optimizer> deep_optimizer_;
  std::unique_ptr<models::Optimizer> wide_optimizer_;
  std::vector<models::EmbeddingTable> descriptions_;

  mutable Mutex mutex_;
  std::condition_variable step_closed_;
  std::vector<Tensor> tensors_ GUARDED_BY(mutex_);
  std::vector<EmbeddingSlab> slabs_ GUARDED_BY(mutex_);
  BatchWindow window_ GUARDED_BY(mutex_);
  int64_t version_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<models::NetworkWeights> best_ GUARDED_BY(mutex_);

  // Synchronous mode. Servers close a step one after another, so a worker that takes over a lane
  // may need the values from before the last step of a server that is ahead: they are kept.
  SynchronousStep step_ GUARDED_BY(mutex_);
  Position position_ GUARDED_BY(mutex_);
  std::vector<std::vector<float>> dense_before_ GUARDED_BY(mutex_);
  std::vector<RowGradients> rows_before_ GUARDED_BY(mutex_);  // values, not gradients
};

}  // namespace sluice::elastic
