#include "executor/scoring/drift.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string_view>

#include "elastic/worker/feature_reader.h"
#include "models/features/feature_transform.h"
#include "models/metrics/stability_index.h"
#include "models/model.pb.h"

namespace sluice::executor {
namespace {

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// A stored plan may hold anything.
bool IsUsable(const models::NumberSpread& spread) {
  const auto ascending = [](const auto& numbers) {
    return std::is_sorted(numbers.begin(), numbers.end(), std::less_equal<>()) &&
           std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
  };
  const auto& shares = spread.shares();
  return spread.bounds_size() == shares.size() && ascending(spread.bounds()) && ascending(shares) &&
         (shares.empty() || (*shares.begin() > 0 && *shares.rbegin() < 1)) &&
         spread.lowest() <= spread.highest();
}

// Of the bins up to each bound, and of the one above all.
std::vector<double> BinShares(const models::NumberSpread& spread) {
  std::vector<double> shares(spread.shares().begin(), spread.shares().end());
  shares.push_back(1);
  std::adjacent_difference(shares.begin(), shares.end(), shares.begin());
  return shares;
}

bool IsNumber(const RowBatch::Column& cells, size_t row) {
  return IsNumeric(cells.TypeAt(row)) && std::isfinite(cells.NumberAt(row));
}

std::optional<ColumnDrift::Numbers> CompareNumbers(const models::NumberSpread& spread, double mean,
                                                   const std::vector<double>& expected,
                                                   const std::vector<int64_t>& bins) {
  constexpr double kShifted = 0.2;
  const int64_t count = std::accumulate(bins.begin(), bins.end(), int64_t{0});
  if (count == 0) {
    return std::nullopt;
  }
  ColumnDrift::Numbers found;
  found.lowest = spread.lowest();
  found.highest = spread.highest();
  found.mean = mean;
  found.trained_mean = spread.mean();
  found.stability_index = models::StabilityIndex(expected, bins);
  const double by_chance = 2 * models::StabilityNoise(bins.size(), spread.sampled(), count);
  found.shifted = found.stability_index > kShifted + by_chance;
  return found;
}

// Of rows of the same distribution some are outside, too: with n in training 2 of n + 1 on average.
bool IsMoreThanChance(int64_t outside, int64_t rows, int64_t trained) {
  const double by_chance =
      2.0 * static_cast<double>(rows) / static_cast<double>(std::max<int64_t>(trained, 0) + 1);
  return static_cast<double>(outside) > by_chance + 3 * std::sqrt(by_chance) + 1;
}

void Merge(const ColumnDrift::Cells& cells, ColumnDrift::Cells* to) {
  if (to->count == 0) {
    to->first = cells.first;
  }
  to->count += cells.count;
}

}  // namespace

Drift::Drift(const models::FeaturePlan& trained, const std::vector<std::string>& names) {
  std::map<std::string_view, size_t> places;
  for (size_t i = 0; i < names.size(); ++i) {
    places.try_emplace(names[i], i);
  }
  for (const models::InputColumn& column : trained.inputs()) {
    const auto place = places.find(column.name());
    if (place == places.end() || !by_name_.try_emplace(column.name(), inputs_.size()).second) {
      continue;
    }
    Input input{place->second, column.name(), column.null_share(), nullptr, {}};
    if (column.has_spread() && IsUsable(column.spread())) {
      input.spread = &column.spread();
      input.expected = BinShares(column.spread());
    }
    inputs_.push_back(std::move(input));
  }
  counts_.resize(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    counts_[i].bins.resize(inputs_[i].expected.size());
  }
}

Drift::~Drift() = default;

Drift::Count Drift::CountCells(const Input& input, const RowBatch::Column& cells, size_t rows) {
  Count count;
  count.bins.resize(input.expected.size());
  for (size_t row = 0; row < rows; ++row) {
    if (cells.null[row] != 0) {
      ++count.nulls;
    } else if (input.spread != nullptr && IsNumber(cells, row)) {
      const double number = cells.NumberAt(row);
      const auto& bounds = input.spread->bounds();
      const auto bin = std::lower_bound(bounds.begin(), bounds.end(), number) - bounds.begin();
      ++count.bins[static_cast<size_t>(bin)];
      ++count.numbers;
      count.outside += number < input.spread->lowest() || number > input.spread->highest() ? 1 : 0;
      count.sum += number;
    }
  }
  return count;
}

void Drift::AddCells(const std::vector<models::OddCells>& cells, ColumnDrift::Cells Count::*to) {
  for (const models::OddCells& odd : cells) {
    const auto input = by_name_.find(odd.column);
    if (input != by_name_.end()) {
      Merge({odd.cells, odd.first}, &(counts_[input->second].*to));
    }
  }
}

void Drift::Add(const elastic::FeatureReader& read) {
  std::vector<Count> added;
  added.reserve(inputs_.size());
  for (const Input& input : inputs_) {
    added.push_back(CountCells(input, read.column(input.place), read.rows()));
  }
  const MutexLock lock(mutex_);
  rows_ += static_cast<int64_t>(read.rows());
  for (size_t i = 0; i < added.size(); ++i) {
    Count& count = counts_[i];
    count.nulls += added[i].nulls;
    count.numbers += added[i].numbers;
    count.outside += added[i].outside;
    count.sum += added[i].sum;
    std::transform(count.bins.begin(), count.bins.end(), added[i].bins.begin(), count.bins.begin(),
                   std::plus<>());
  }
  AddCells(read.features().odd, &Count::odd);
  AddCells(read.features().unknown, &Count::unknown);
}

int64_t Drift::rows() const {
  const MutexLock lock(mutex_);
  return rows_;
}

std::vector<ColumnDrift> Drift::Columns() const {
  std::vector<ColumnDrift> columns;
  const MutexLock lock(mutex_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    const Count& count = counts_[i];
    ColumnDrift drift;
    drift.column = input.name;
    drift.rows = rows_;
    drift.odd = count.odd;
    drift.unknown = count.unknown;
    drift.null_share = Share(count.nulls, rows_);
    drift.trained_null_share = input.null_share;
    if (input.spread != nullptr) {
      const double mean = count.sum / static_cast<double>(std::max<int64_t>(count.numbers, 1));
      drift.numbers = CompareNumbers(*input.spread, mean, input.expected, count.bins);
    }
    if (drift.numbers.has_value()) {
      drift.numbers->outside_share = Share(count.outside, rows_);
      drift.numbers->outside = IsMoreThanChance(count.outside, rows_, input.spread->sampled());
    }
    columns.push_back(std::move(drift));
  }
  return columns;
}

}  // namespace sluice::executor
