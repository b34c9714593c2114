#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/parameters/batch_window.h"
#include "elastic/parameters/embedding_slab.h"
#include "elastic/parameters/parameter_rules.h"
#include "elastic/parameters/partition_image.h"
#include "elastic/parameters/synchronous_step.h"
#include "elastic/queue/keep_order.h"

namespace sluice::elastic {

// One virtual partition: its chunks of the dense tensors, its rows of the tables, their optimizer
// slots, and the record of which batches have changed them. All of it moves together, so that a
// batch counts once wherever the partition is. Deterministic: the same gradients in the same order
// give the same bits. Not thread-safe. `rules` must outlive it.
class Partition {
 public:
  Partition(const ParameterRules& rules, uint32_t index);

  // The values of a new model, or `base`'s, with fresh slots.
  void Initialize(const models::NetworkWeights* base);

  // Asynchronous: whether Apply is to follow. False: the batch has been applied before. Aborted:
  // the lease belongs to another worker; FailedPrecondition: an earlier batch is missing.
  Result<bool> IsNew(const BatchIdentity& batch);
  // `version`: from which the gradient was computed; s versions behind, it is multiplied by 1/s.
  // `dense` as chunks().
  void Apply(const BatchIdentity& batch, int64_t version,
             std::span<const std::span<const float>> dense, std::span<const RowSpan> tables);

  // Applies the closed step's mean gradient, computed elsewhere.
  void ApplyStep(const BatchIdentity& batch, std::span<const std::span<const float>> dense,
                 std::span<const RowSpan> tables) {
    Update(dense, tables, RateFactor(batch.rate_cuts));
  }

  // Synchronous: adds one lane's part of a step (`end`: the lane has none, now or later), and
  // closes complete steps. True: a step or the round has closed. An error changes nothing.
  Result<bool> PushLane(const BatchIdentity& batch, double weight, bool end,
                        std::span<const std::span<const float>> dense,
                        std::span<const RowSpan> tables);
  enum class Ready {
    kNow,
    kBefore,  // the step has closed: the values from before it are kept, and are the ones needed
    kNotYet,
  };
  Ready StepReady(const BatchIdentity& batch) const;

  int64_t VersionOf(Ready which) const { return which == Ready::kBefore ? version_ - 1 : version_; }

  // Copies values out (`dense`: empty, or a destination for each chunk; one row target for each
  // table); returns their version. `absent`: the value of a missing row.
  int64_t Read(Ready which, std::span<float* const> dense,
               std::span<const std::span<const int64_t>> ids, std::span<float* const> rows,
               EmbeddingSlab::Absent absent = EmbeddingSlab::Absent::kInitial) const;

  const std::vector<PartitionLayout::Chunk>& chunks() const { return rules_.layout.chunks(index_); }
  const float* values(size_t chunk) const { return dense_[chunk].data(); }
  int64_t version() const { return version_; }
  int64_t rows() const;  // of all tables
  BatchIndex AppliedBatches(Epoch epoch, ShardId shard) const {
    return window_.AppliedBatches(epoch, shard);
  }

  // Keeps the best weights so far in addition to the live ones (early stopping returns to them).
  // FailedPrecondition: those that were judged are gone; Aborted: a later order has been carried
  // out. `order.versions`: empty, or of every partition.
  Status KeepBest(const KeepOrder& order);
  std::shared_ptr<const models::NetworkWeights> best() const { return best_; }
  // The kept weights if there are any. Chunks of one tensor concatenated.
  models::NetworkWeights Export() const { return best_ != nullptr ? *best_ : ExportLive(); }

  // partition_state.cc: captures everything above, and restores it from an image's bytes. A loaded
  // partition continues with the same bits. Load fails on damage, another layout or another model;
  // then nothing has changed. Pointers to dense values stay valid.
  PartitionImage Capture() const;
  Status Load(ByteSource& bytes);
  Status Load(std::string_view bytes);

 private:
  struct Position {  // of the open step
    Epoch epoch = kNoEpoch;
    RoundIndex round = RoundIndex::First();
    BatchIndex step;
    bool over = true;  // the round has ended; the next push opens another
  };
  void Update(std::span<const std::span<const float>> dense, std::span<const RowSpan> tables,
              float rate_scale);
  void CloseStep(float rate_scale);
  models::NetworkWeights ExportLive() const;
  bool FitsExport(const models::NetworkWeights& weights) const;

  const ParameterRules& rules_;
  const uint32_t index_;
  std::vector<std::vector<float>> dense_;  // by chunk: values, then the optimizer's slots
  std::vector<EmbeddingSlab> slabs_;
  BatchWindow window_;
  int64_t version_ = 0;
  std::shared_ptr<const models::NetworkWeights> best_;
  int64_t best_number_ = 0;  // of the order

  // Synchronous mode. Partitions close a step one after another, so a worker that takes over a lane
  // may need the values from before the last step of a partition that is ahead: they are kept.
  SynchronousStep step_;
  Position position_;
  std::vector<std::vector<float>> dense_before_;
  std::vector<RowGradients> rows_before_;  // values, not gradients
};

// SHA-256 of a partition's export, and of those of all partitions, in their order: processes that
// keep weights report it, and the commit compares it.
std::string DigestOf(const models::NetworkWeights& part);
std::string DigestOf(const std::vector<std::string>& parts);
// Internal: the weights to be committed are not those that were judged and kept.
Status CheckDigest(const std::string& found, const std::string& kept);

// Joins the exports of all partitions, in their order.
Result<models::NetworkWeights> MergePartitions(const std::vector<models::NetworkWeights>& parts,
                                               const PartitionLayout& layout,
                                               const models::Network& network);

}  // namespace sluice::elastic
