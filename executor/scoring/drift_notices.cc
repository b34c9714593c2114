#include "executor/scoring/drift_notices.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "executor/executor.h"
#include "models/features/cell_format.h"
#include "planner/result_columns.h"

namespace sluice::executor {
namespace {

// A vocabulary need not have the rarest values of the training's rows, nor a sample the outermost.
constexpr double kWorthTelling = 0.01;

double Share(const ColumnDrift::Cells& cells, int64_t rows) {
  return rows == 0 ? 0 : static_cast<double>(cells.count) / static_cast<double>(rows);
}

void TellCells(const ColumnDrift& column, ResultSink& sink) {
  if (column.odd.count > 0) {
    sink.Notice(fmt::format("in {} {} {} read as missing, unlike those of the training: {}",
                            column.column, column.odd.count,
                            column.odd.count == 1 ? "cell is" : "cells are",
                            models::QuotedCell(column.odd.first)));
  }
  const double unknown = Share(column.unknown, column.rows);
  if (unknown >= kWorthTelling) {
    sink.Notice(fmt::format(
        "{:.3g} % of {} ({} of {} rows) {} of values that the model does not know, "
        "the first {}",
        100 * unknown, column.column, column.unknown.count, column.rows,
        column.unknown.count == 1 ? "is" : "are", models::QuotedCell(column.unknown.first)));
  }
}

// What is unlike the training's distribution; empty: nothing.
std::vector<std::string> Differences(const ColumnDrift& column) {
  std::vector<std::string> differences;
  if (column.trained_null_share == 0 && column.null_share >= kWorthTelling) {
    differences.push_back(
        fmt::format("{:.3g} % NULL, which it never was", 100 * column.null_share));
  }
  if (const auto& numbers = column.numbers; numbers.has_value()) {
    if (numbers->outside && numbers->outside_share >= kWorthTelling) {
      differences.push_back(fmt::format("{:.3g} % outside of {:.6g} to {:.6g}",
                                        100 * numbers->outside_share, numbers->lowest,
                                        numbers->highest));
    }
    if (numbers->shifted) {
      differences.push_back(
          fmt::format("shifted (stability index {:.2f}, mean {:.4g} instead of "
                      "{:.4g})",
                      numbers->stability_index, numbers->mean, numbers->trained_mean));
    }
  }
  return differences;
}

double IndexOf(const ColumnDrift& column) {
  return column.numbers.has_value() ? column.numbers->stability_index : -1;
}

std::vector<ColumnDrift> MostShiftedFirst(std::vector<ColumnDrift> columns) {
  std::stable_sort(columns.begin(), columns.end(), [](const ColumnDrift& a, const ColumnDrift& b) {
    return IndexOf(a) > IndexOf(b);
  });
  return columns;
}

}  // namespace

void TellDrift(const Drift& drift, const std::function<bool()>& may_inspect, ResultSink& sink) {
  constexpr int64_t kFewRows = 20;  // a row or two are always unlike a thousand
  constexpr size_t kMostTold = 5;
  const std::vector<ColumnDrift> columns = drift.Columns();
  std::vector<std::string> told;
  for (const ColumnDrift& column : columns) {
    TellCells(column, sink);
  }
  if (drift.rows() < kFewRows) {
    return;
  }
  for (const ColumnDrift& column : MostShiftedFirst(columns)) {
    if (const auto differences = Differences(column); !differences.empty()) {
      told.push_back(fmt::format("{} is unlike the training's: {}", column.column,
                                 fmt::join(differences, ", ")));
    }
  }
  if (told.empty() || !may_inspect()) {
    return;
  }
  for (size_t i = 0; i < std::min(told.size(), kMostTold); ++i) {
    sink.Notice(told[i]);
  }
  if (told.size() > kMostTold) {
    sink.Notice(
        fmt::format("{} further columns are unlike the training's: TO EVALUATE ... WITH "
                    "validation.report='drift' lists all",
                    told.size() - kMostTold));
  }
}

ResultRows DriftRows(const Drift& drift) {
  ResultRows rows(planner::DriftResult());
  for (const ColumnDrift& column : MostShiftedFirst(drift.Columns())) {
    std::vector<Value> row = {column.column, column.null_share, column.trained_null_share,
                              Share(column.unknown, column.rows)};
    if (const auto& numbers = column.numbers; numbers.has_value()) {
      row.insert(row.end(), {numbers->outside_share, numbers->mean, numbers->trained_mean,
                             numbers->stability_index});
    }
    row.resize(rows.schema().columns.size());  // NULL
    rows.Add(std::move(row));
  }
  return rows;
}

}  // namespace sluice::executor
