#include "executor/scoring/odd_cells.h"

#include <fmt/core.h>

#include "executor/executor.h"
#include "models/features/cell_format.h"

namespace sluice::executor {

void OddCellCount::Count(const std::vector<models::OddCells>& cells, Columns* columns) {
  for (const models::OddCells& odd : cells) {
    Seen& seen = (*columns)[odd.column];
    if (seen.cells == 0) {
      seen.first = odd.first;
    }
    seen.cells += odd.cells;
  }
}

void OddCellCount::Add(const models::FeatureBatch& batch) {
  const MutexLock lock(mutex_);
  rows_ += batch.rows;
  Count(batch.odd, &missing_);
  Count(batch.unknown, &unknown_);
}

void OddCellCount::TellTo(ResultSink& sink) const {
  // A vocabulary need not have the rarest values of the training's rows.
  constexpr double kWorthTelling = 0.01;
  const MutexLock lock(mutex_);
  for (const auto& [column, seen] : missing_) {
    sink.Notice(fmt::format("in {} {} {} read as missing, unlike those of the training: {}", column,
                            seen.cells, seen.cells == 1 ? "cell is" : "cells are",
                            models::QuotedCell(seen.first)));
  }
  for (const auto& [column, seen] : unknown_) {
    const double share = static_cast<double>(seen.cells) / static_cast<double>(rows_);
    if (share >= kWorthTelling) {
      sink.Notice(
          fmt::format("{:.3g} % of {} ({} of {} rows) {} of values that the model does not "
                      "know, the first {}",
                      100 * share, column, seen.cells, rows_, seen.cells == 1 ? "is" : "are",
                      models::QuotedCell(seen.first)));
    }
  }
}

}  // namespace sluice::executor
