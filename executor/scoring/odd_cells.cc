#include "executor/scoring/odd_cells.h"

#include <fmt/core.h>

#include "executor/executor.h"
#include "models/features/cell_format.h"

namespace sluice::executor {

void OddCellCount::Add(const models::FeatureBatch& batch) {
  if (batch.odd.empty()) {
    return;
  }
  const MutexLock lock(mutex_);
  for (const models::OddCells& odd : batch.odd) {
    Seen& seen = columns_[odd.column];
    if (seen.cells == 0) {
      seen.first = odd.first;
    }
    seen.cells += odd.cells;
  }
}

void OddCellCount::TellTo(ResultSink& sink) const {
  const MutexLock lock(mutex_);
  for (const auto& [column, seen] : columns_) {
    sink.Notice(fmt::format("in {} {} {} read as missing, unlike those of the training: {}", column,
                            seen.cells, seen.cells == 1 ? "cell is" : "cells are",
                            models::QuotedCell(seen.first)));
  }
}

}  // namespace sluice::executor
