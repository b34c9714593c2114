#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "models/trees/gradient_boosting_internal.h"
#include "models/trees/histogram/cut_points.h"
#include "models/trees/histogram/gradient_sums.h"
#include "models/trees/histogram/objective.h"
#include "models/trees/histogram/row_share.h"
#include "models/trees/histogram/threads.h"
#include "models/trees/histogram/value_counts.h"

// Rows are read twice: first to count their numbers, then to bin them.
namespace sluice::models::histogram {

struct BaseModel;

// InvalidArgument unless the objective can learn all of these labels.
Status CheckLabels(std::span<const float> labels, const Objective& objective,
                   const BoostingParameters& parameters);

// Adds the numbers of the rows to the counts of their columns.
void CountValues(const RowMatrix& rows, bool sparse, Threads* threads,
                 std::vector<ValueCounts>* counts);

// The pass's rows as bins.
struct ShareOptions {
  const ColumnLayout* layout = nullptr;
  const CutPoints* cuts = nullptr;
  const Objective* objective = nullptr;
  Threads* threads = nullptr;
  const BaseModel* base = nullptr;  // has the margins; null: StartFrom will say
  uint64_t first_row = 0;
  size_t rows = 0;  // if that is known
};
Result<std::unique_ptr<RowShare>> ReadShare(RowPieces* pieces, const ShareOptions& options);

}  // namespace sluice::models::histogram
