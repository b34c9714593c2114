#include <algorithm>
#include <cmath>
#include <utility>

#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/trees/histogram/forest_memory_internal.h"
#include "models/trees/histogram/tree_messages_internal.h"

namespace sluice::models::histogram {
namespace {

Status Damaged() {
  return Internal("what an earlier training has remembered is damaged");
}

// Sums of more rows do not fit.
constexpr uint64_t kMostRows = uint64_t{1} << 40;

bool IsStart(const ForestStart& start) {
  const bool numbers = std::isfinite(start.labels().gradient()) &&
                       std::isfinite(start.labels().hessian()) &&
                       std::isfinite(start.most_weight()) && start.most_weight() >= 0;
  const bool begins = start.base_score().empty() || ParseNumber(start.base_score()).has_value();
  const auto& first = start.first_rows();
  const bool ascending = std::is_sorted(first.begin(), first.end());
  return numbers && begins && ascending && start.rows() > 0 && start.rows() < kMostRows &&
         (first.empty() || *first.rbegin() <= start.rows());
}

}  // namespace

Result<ForestMemory> ForestMemory::Read(const std::vector<std::string>& remembered,
                                        const Shape& shape) {
  ForestMemory memory;
  if (!memory.start.ParseFromString(remembered.front()) || !IsStart(memory.start)) {
    return Damaged();
  }
  ASSIGN_OR_RETURN(CutPoints cuts, CutPoints::Read(memory.start.cuts()));
  if (cuts.columns() != shape.columns) {
    return Damaged();
  }
  memory.cuts = std::make_unique<CutPoints>(std::move(cuts));
  for (size_t i = 1; i < remembered.size(); ++i) {
    ForestRound& round = memory.rounds.emplace_back();
    if (!round.ParseFromString(remembered[i]) ||
        static_cast<size_t>(round.trees_size()) != shape.outputs * shape.parallel_trees) {
      return Damaged();
    }
    for (const GrownTree& tree : round.trees()) {
      RETURN_IF_ERROR(CheckTree(tree, *memory.cuts));
      if (tree.values().empty() || tree.output() >= shape.outputs) {
        return Damaged();
      }
    }
  }
  return memory;
}

}  // namespace sluice::models::histogram
