#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "elastic/collective/mesh.h"
#include "elastic/parameters/lane_tree.h"
#include "elastic/parameters/synchronous_step.h"

namespace sluice::elastic {

// A gradient with the dense tensors concatenated.
struct FlatGradient {
  std::vector<float> dense;
  std::vector<RowGradients> tables;
};

// What every member learns about a lane in a step: the step's line in the ledger.
struct LaneNote {
  uint32_t lane = 0;
  uint32_t gradient = 0;  // 1: the lane has a batch in this step
  uint32_t ends = 0;      // 1: it has none after this step
  uint32_t end_of_shard = 0;
  double weight = 0;  // sums over the batch's rows
  double loss = 0;
  int64_t rows = 0;
  int64_t rows_read = 0;  // from the database since the lane's previous note
  uint64_t checksum = 0;  // of the lane's shard
};

// The result of a step, the same on every member.
struct StepSum {
  std::vector<LaneNote> lanes;  // by lane
  double weight = 0;
  bool reconvene = false;  // a worker waits to join: the members regroup after this step
  // The mean gradient over the rows of all lanes; empty if no lane had a gradient.
  FlatGradient gradient;
};

// The synchronous step without servers: a reduce-scatter in which the additions follow the fixed
// tree over the lanes, then an all-gather. Each member owns a slice of the dense numbers and the
// rows that hash to it; the others send it their part: the sums of their largest complete nodes of
// the tree. So the bits are those of SynchronousStep, whatever the number of members. Belongs to
// one thread.
class AllReduce {
 public:
  using Sums = LaneSums<FlatGradient>;
  // `dimensions`: of the tables.
  AllReduce(Mesh& mesh, size_t dense_size, std::vector<uint32_t> dimensions);
  ~AllReduce();

  // `step` must be the same on all members, else Unavailable. `mine`: the sums of the lanes that
  // this member computed (scratch afterwards), and its notes on them. OK: every member has sent its
  // part of this step, so every member had closed the step before it. Unavailable: a member is gone
  // or silent; `sum` is unusable then. Cancelled: asked to stop.
  // `meanwhile`, if not empty, runs once while the others' parts are on their way.
  Status Run(int64_t step, uint32_t lanes, std::vector<Sums::Node>* mine,
             std::span<const LaneNote> notes, bool reconvene, StepSum* sum,
             const std::function<void()>& meanwhile = {});

 private:
  struct Header;   // of each message
  struct Part;     // the part of a node's sum that belongs to one slice
  struct Inbound;  // data from one peer
  Status Scatter(int64_t step, uint32_t lanes, std::vector<Sums::Node>* mine,
                 std::span<const LaneNote> notes, bool reconvene,
                 const std::function<void()>& meanwhile);
  Status Collect(uint32_t lanes, std::span<const LaneNote> notes, StepSum* sum) const;
  Status Combine(uint32_t lanes, std::vector<Sums::Node>* mine, StepSum* sum);
  Status Gather(int64_t step, StepSum* sum);
  // With two members each adds up everything. A reduce-scatter and an all-gather send as many
  // bytes, but wait twice.
  bool AddsEverything() const { return mesh_.size() == 2; }
  std::pair<size_t, size_t> Slice(Rank rank) const;
  void SplitRows(const std::vector<Sums::Node>& mine);

  Mesh& mesh_;
  const size_t dense_size_;
  const std::vector<uint32_t> dimensions_;
  std::vector<std::unique_ptr<Inbound>> inbound_;  // by rank; this member's own is not used
  std::vector<std::vector<std::vector<RowGradients>>> outbound_;  // rank, node, table
};

// The steps' arithmetic, shared with SynchronousStep.
void AddTo(std::span<float> left, std::span<const float> right);
// sum = factor x the slices (by lane; empty: no gradient), added along the tree. The slices are
// scratch afterwards; non-empty ones are as long as the sum. Without any, the sum is unchanged.
void AddSlices(std::span<const std::span<float>> slices, float factor, std::span<float> sum);
void Merge(FlatGradient* left, const FlatGradient& right, std::span<const uint32_t> dimensions);

}  // namespace sluice::elastic
