#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace sluice::elastic {

// The rows of one table that a batch has gradients for.
struct RowGradients {
  std::vector<int64_t> ids;  // distinct
  std::vector<float> values;
};

// More than any plan has.
inline constexpr uint32_t kMaxLanes = 1U << 16;

// Adds the rows of `right`: rows that both have are added element by element, others appended.
void MergeRows(RowGradients* left, const RowGradients& right, size_t dimension);

// One lane's contribution to a step.
struct LaneGradient {
  double weight = 0;  // sum of the row weights of its batch
  std::vector<std::vector<float>> dense;
  std::vector<RowGradients> tables;
};

// The open step of a round in synchronous mode: collects one contribution from each lane and adds
// them along a fixed binary tree over the lanes, so that the sum has the same bits whichever worker
// computed which lane, and in whatever order they arrived. Not thread-safe.
class SynchronousStep {
 public:
  // `dimensions`: of the tables.
  explicit SynchronousStep(std::vector<uint32_t> dimensions);

  void StartRound(uint32_t lanes);
  bool Has(uint32_t lane) const;
  void Add(uint32_t lane, LaneGradient gradient);
  void End(uint32_t lane);  // the lane has nothing more for this step, nor for later ones
  bool Complete() const;    // every lane has contributed or ended
  bool RoundOver() const;   // every lane has ended, and none has a gradient in the open step
  // The mean gradient over the rows of all lanes; the next step opens. Call when Complete and not
  // RoundOver.
  LaneGradient Close();
  uint32_t lanes() const { return static_cast<uint32_t>(ended_.size()); }

  // The state of the open step, by lane.
  const std::vector<bool>& ended() const { return ended_; }
  const std::vector<std::optional<LaneGradient>>& gradients() const { return gradients_; }
  void Restore(std::vector<bool> ended, std::vector<std::optional<LaneGradient>> gradients);

 private:
  void Merge(LaneGradient* left, const LaneGradient& right) const;

  std::vector<uint32_t> dimensions_;
  std::vector<bool> ended_;
  std::vector<std::optional<LaneGradient>> gradients_;
};

}  // namespace sluice::elastic
