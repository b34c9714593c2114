#include "catalog/row_ranges_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>

#include "catalog/column_description.h"

namespace sluice::catalog {
namespace {

// A plan carries its shards (some 20 bytes each) to every process; more of them are of no use.
constexpr int64_t kMaxShards = 100'000;
// Pieces of a mixed shard: each shard contains this many parts of the table, which is fine enough
// for every shard to resemble the whole, even if the table is stored in the order of its label.
constexpr int64_t kPiecesPerShard = 32;
// Shards of few rows have fewer pieces, since each piece is a look-up in the database.
constexpr int64_t kMinPieceRows = 16;

class RangeStream final : public RowStream {
 public:
  RangeStream(RowRanges ranges, OpenRange open)
      : ranges_(std::move(ranges)), open_(std::move(open)) {}

  Status Open() {
    now_.reset();  // a connection has one stream at a time
    const auto [begin, end] = ranges_[next_++];
    ASSIGN_OR_RETURN(now_, open_(begin, end));
    return OkStatus();
  }

  Status Next(size_t max_rows, RowBatch* batch) override {
    for (;;) {
      RETURN_IF_ERROR(now_->Next(max_rows, batch));
      if (batch->rows > 0 || next_ == ranges_.size()) {
        return OkStatus();
      }
      waited_before_ += now_->waited_seconds();
      RETURN_IF_ERROR(Open());
    }
  }
  double waited_seconds() const override { return waited_before_ + now_->waited_seconds(); }

 private:
  const RowRanges ranges_;
  const OpenRange open_;
  size_t next_ = 0;
  std::unique_ptr<RowStream> now_;
  double waited_before_ = 0;  // for the streams before now_
};

// Which of a stratum's ranges a shard gets: a different one in each, so that periodic patterns of
// the table are spread over all shards.
size_t PlaceInStratum(size_t stratum, size_t shard, size_t shards) {
  constexpr uint64_t kOdd = 0x9E3779B97F4A7C15ULL;
  constexpr unsigned kHalf = 32;
  const uint64_t turn = ((stratum + 1) * kOdd) >> kHalf;
  return static_cast<size_t>((shard + turn) % shards);
}

}  // namespace

int64_t RowsPerRange(const DatasetOptions& options) {
  const int64_t rows = std::max<int64_t>(options.rows_per_shard, 1);
  const int64_t pieces =
      options.mixed ? std::clamp<int64_t>(rows / kMinPieceRows, 1, kPiecesPerShard) : 1;
  return (rows + pieces - 1) / pieces;
}

void PutShards(std::vector<ShardRange> ranges, const DatasetOptions& options, DatasetSpec* spec) {
  int64_t rows = 0;
  for (const ShardRange& range : ranges) {
    rows += range.estimated_rows();
  }
  spec->set_estimated_rows(rows);
  const int64_t per_shard = std::max<int64_t>(options.rows_per_shard, 1);
  const auto shards = static_cast<size_t>(std::max<int64_t>((rows + per_shard - 1) / per_shard, 1));
  if (options.mixed && shards == 1 && !ranges.empty()) {
    ranges.front().set_end(ranges.back().end());
    ranges.front().set_estimated_rows(rows);
    ranges.resize(1);
  }
  if (!options.mixed || ranges.size() < 2 * shards) {  // too many rows for as many pieces
    spec->mutable_shards()->Add(std::make_move_iterator(ranges.begin()),
                                std::make_move_iterator(ranges.end()));
    return;
  }
  std::vector<int64_t> first_rows;
  int64_t before = 0;
  for (const ShardRange& range : ranges) {
    first_rows.push_back(before);
    before += range.estimated_rows();
  }
  for (size_t shard = 0; shard < shards; ++shard) {
    ShardRange* put = spec->add_shards();
    int64_t sum = 0;
    for (size_t first = 0; first < ranges.size(); first += shards) {
      const size_t range = first + PlaceInStratum(first / shards, shard, shards);
      if (range >= ranges.size()) {
        continue;  // the last stratum does not have a range for every shard
      }
      ShardPiece* piece = put->add_pieces();
      piece->set_begin(ranges[range].begin());
      piece->set_end(ranges[range].end());
      piece->set_estimated_rows(ranges[range].estimated_rows());
      piece->set_first_row(first_rows[range]);
      sum += ranges[range].estimated_rows();
    }
    put->set_begin(put->pieces(0).begin());
    put->set_end(put->pieces(put->pieces_size() - 1).end());
    put->set_estimated_rows(sum);
  }
}

RowRanges RangesOf(const ShardRange& shard) {
  RowRanges ranges;
  for (const ShardPiece& piece : shard.pieces()) {
    ranges.emplace_back(piece.begin(), piece.end());
  }
  if (ranges.empty()) {
    ranges.emplace_back(shard.begin(), shard.end());
  }
  return ranges;
}

Result<std::unique_ptr<RowStream>> ReadRanges(RowRanges ranges, OpenRange open) {
  if (ranges.size() == 1) {
    return open(ranges.front().first, ranges.front().second);
  }
  auto stream = std::make_unique<RangeStream>(std::move(ranges), std::move(open));
  RETURN_IF_ERROR(stream->Open());
  return std::unique_ptr<RowStream>(std::move(stream));
}

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
