#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "base/status.h"
#include "models/model.h"
#include "models/networks/initialize.h"
#include "models/networks/optimizer.h"

namespace sluice::elastic {

// The existing rows of one embedding table. A row is weights and optimizer slots, contiguous in a
// slab; ids are found by open addressing. Not thread-safe.
class EmbeddingSlab {
 public:
  // `parts`: the number of slabs that share the table's ids.
  EmbeddingSlab(const models::EmbeddingTable& table, const models::Optimizer& optimizer,
                uint64_t seed, uint32_t parts = 1);
  EmbeddingSlab(EmbeddingSlab&&) noexcept = default;

  enum class Absent : uint8_t {
    kInitial,  // a missing row has its initial value, determined by (seed, table, id)
    kZero,     // a missing row is zero
  };
  // Copies the weights of the rows to `values` (ids.size() x dimension); creates nothing.
  void Read(std::span<const int64_t> ids, float* values, Absent absent = Absent::kInitial) const;
  // One optimizer step for each row (ids are distinct); missing rows are created. `step`: of the
  // partition, which is what optimizers count by, as they do for the tensors that every step
  // changes (SparseAdam, LazyAdam). A count for each row would begin a rare value's row with much
  // smaller steps.
  void Update(std::span<const int64_t> ids, const float* gradients, int64_t step, float rate_scale);
  void Write(std::span<const int64_t> ids, const float* values);  // fresh slots
  // Row ids in ascending order with their weights.
  models::NetworkWeights::Table Export() const;

  // The rows in the order of their creation: weights and slots. Restore fails, changing nothing, if
  // the sizes do not fit or an id occurs twice.
  struct Image {         // bytes (packed_numbers.h)
    std::string ids;     // int64_t
    std::string values;  // float: stride() for each id
  };
  Image Save() const;
  Status Restore(const Image& image);

  size_t rows() const { return ids_.size(); }
  size_t stride() const { return stride_; }
  uint32_t dimension() const { return table_.dimension; }

 private:
  static constexpr uint32_t kEmpty = 0xFFFFFFFF;
  // A slab grows block by block and never moves its rows: first by small blocks, and by huge pages
  // once it would fill four, so that at most a fifth is unused.
  static constexpr uint32_t kNearShift = 8;  // log2 of the rows of a small block
  static constexpr uint32_t kNearPages = 4;

  uint32_t Find(int64_t id) const;
  // A newly created row has no values yet.
  uint32_t FindOrCreate(int64_t id);
  void Initialize(size_t first_row);  // the rows from there on
  void Insert(int64_t id, uint32_t row);
  void SetBuckets(size_t buckets);  // empties the index
  void Grow();
  // Prefetches the memory for the next rows from ids[at] on: their buckets in the index, and the
  // rows in those buckets.
  void FetchIndex(std::span<const int64_t> ids, size_t at) const;
  void FetchRows(std::span<const int64_t> ids, size_t at) const;
  size_t Bucket(int64_t id) const;
  uint32_t Tag(int64_t id) const;
  struct Place {
    size_t block;
    size_t row;  // of the block
  };
  Place PlaceOf(uint32_t row) const {
    if (row < near_rows_) {
      return {row >> kNearShift, row & ((1U << kNearShift) - 1)};
    }
    const uint32_t far = row - near_rows_;
    return {(near_rows_ >> kNearShift) + (far >> far_shift_), far & ((1U << far_shift_) - 1)};
  }
  float* Row(uint32_t row) const {
    const Place place = PlaceOf(row);
    return blocks_[place.block].data() + place.row * stride_;
  }

  models::EmbeddingTable table_;
  const models::Optimizer& optimizer_;
  const uint64_t seed_;
  const models::RowInitializer initializer_;
  const size_t stride_;
  const bool direct_;  // a bucket for each id: the id is its own hash and every probe succeeds
  uint32_t far_shift_ = kNearShift;  // log2 of the rows of a large block
  uint32_t near_rows_ = 0;           // in small blocks
  std::vector<HugePageBlock<float>> blocks_;
  std::vector<int64_t> ids_;  // by row
  // Bucket -> row. A row's number needs fewer bits than a bucket's: the remaining bits hold a part
  // of the id's hash, so that rows of other ids are rarely touched.
  std::vector<uint32_t, HugePageAllocator<uint32_t>> index_;
  size_t mask_ = 0;
  uint32_t row_mask_ = 0;
};

}  // namespace sluice::elastic
