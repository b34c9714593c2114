#include "catalog/row_ranges_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "catalog/column_description.h"

namespace sluice::catalog {
namespace {

// A plan carries its shards (some 20 bytes each) to every process; more of them help nobody.
constexpr int64_t kMaxShards = 100'000;

}  // namespace

void RowDensity::Add(int64_t key, double rows) {
  if (key > points_.back().first) {
    points_.emplace_back(key, points_.back().second + std::max(rows, 0.0));
  }
}

int64_t RowDensity::KeyAfter(double rows) const {
  const auto next = std::upper_bound(
      points_.begin(), points_.end(), rows,
      [](double wanted, const std::pair<int64_t, double>& point) { return wanted < point.second; });
  if (next == points_.begin()) {
    return first_key();
  }
  if (next == points_.end()) {
    return last_key();
  }
  const auto& [key, before] = *(next - 1);
  const double share = (rows - before) / (next->second - before);
  return key + static_cast<int64_t>(share * static_cast<double>(next->first - key));
}

std::vector<ShardRange> CutEvenly(const RowDensity& density, int64_t rows_per_shard) {
  const auto wanted = static_cast<int64_t>(
      std::llround(density.rows() / static_cast<double>(std::max<int64_t>(rows_per_shard, 1))));
  const int64_t count = std::clamp<int64_t>(wanted, 1, kMaxShards);
  std::vector<ShardRange> shards;
  int64_t begin = density.first_key();
  for (int64_t i = 1; i <= count; ++i) {
    const double share = static_cast<double>(i) / static_cast<double>(count);
    const int64_t end = i == count ? density.last_key() : density.KeyAfter(density.rows() * share);
    if (end <= begin) {
      continue;
    }
    ShardRange& shard = shards.emplace_back();
    shard.set_begin(begin);
    shard.set_end(end);
    shard.set_estimated_rows(std::llround(density.rows() / static_cast<double>(count)));
    begin = end;
  }
  if (shards.empty()) {
    shards.emplace_back().set_begin(begin);
    shards.back().set_end(density.last_key());
  }
  return shards;
}

std::vector<std::pair<int64_t, int64_t>> SpreadRanges(const RowDensity& density, int64_t count,
                                                      int64_t rows) {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  if (density.rows() <= static_cast<double>(rows)) {
    ranges.emplace_back(density.first_key(), density.last_key());
    return ranges;
  }
  const double each = static_cast<double>(rows) / static_cast<double>(count);
  int64_t free_from = density.first_key();
  for (int64_t i = 0; i < count; ++i) {
    const double at = density.rows() * static_cast<double>(i) / static_cast<double>(count);
    const int64_t begin = std::max(free_from, density.KeyAfter(at));
    const int64_t end =
        std::min(density.last_key(), std::max(begin + 1, density.KeyAfter(at + each)));
    if (begin < end) {
      ranges.emplace_back(begin, end);
      free_from = end;
    }
  }
  return ranges;
}

std::vector<ShardRange> CutAtKeys(const std::vector<int64_t>& keys, int64_t end, int64_t rows,
                                  int64_t rows_per_shard) {
  std::vector<ShardRange> shards;
  for (size_t i = 0; i < keys.size(); ++i) {
    ShardRange& shard = shards.emplace_back();
    shard.set_begin(keys[i]);
    shard.set_end(i + 1 < keys.size() ? keys[i + 1] : end);
    shard.set_estimated_rows(
        std::min(rows_per_shard, rows - static_cast<int64_t>(i) * rows_per_shard));
  }
  if (shards.empty()) {
    shards.emplace_back().set_end(end);
  }
  return shards;
}

std::string WithBounds(std::string_view shard_select, std::string_view begin,
                       std::string_view end) {
  constexpr std::string_view kBegin = "{begin}";
  constexpr std::string_view kEnd = "{end}";
  std::string sql(shard_select);
  const size_t end_at = sql.rfind(kEnd);
  if (end_at != std::string::npos) {
    sql.replace(end_at, kEnd.size(), end);
  }
  const size_t begin_at = sql.rfind(kBegin);
  if (begin_at != std::string::npos) {
    sql.replace(begin_at, kBegin.size(), begin);
  }
  return sql;
}

std::string NumberedColumns(size_t count) {
  std::vector<size_t> columns(count);
  for (size_t i = 0; i < count; ++i) {
    columns[i] = i;
  }
  return ChosenColumns(columns);
}

std::string ChosenColumns(const std::vector<size_t>& columns) {
  std::string text;
  for (const size_t column : columns) {
    text += fmt::format("{}c{}", text.empty() ? "" : ", ", column);
  }
  return text;
}

Result<Schema> ChosenSchema(const Schema& all, const std::vector<size_t>& columns) {
  Schema chosen;
  for (const size_t column : columns) {
    if (column >= all.columns.size()) {
      return InvalidArgument(fmt::format("the dataset has {} columns, so there is no column {}",
                                         all.columns.size(), column));
    }
    chosen.columns.push_back(all.columns[column]);
  }
  return chosen;
}

void PutSchema(const Schema& schema, DatasetSpec* spec) {
  for (const ColumnInfo& column : schema.columns) {
    PutColumn(column, spec->add_columns());
  }
}

std::string RandomSuffix() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

}  // namespace sluice::catalog
