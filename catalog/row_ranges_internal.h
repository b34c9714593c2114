#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/row_batch.h"
#include "base/status.h"
#include "catalog/data_source.h"
#include "catalog/dataset.pb.h"

namespace sluice::catalog {

// Tables of at most this many rows are cut after every rows_per_shard-th row, which takes a scan of
// their row addresses (some 10 ms); larger ones by estimates. So a small table has the same shards,
// and trains the same model, in both databases.
inline constexpr int64_t kExactCutRows = 200'000;

// How many rows lie before a key of the cut: known at a few keys, linear between them.
class RowDensity {
 public:
  // Keys ascend; `rows` is the estimated number of rows between the last key and this one.
  void Start(int64_t key) { points_ = {{key, 0.0}}; }
  void Add(int64_t key, double rows);
  double rows() const { return points_.empty() ? 0 : points_.back().second; }
  int64_t first_key() const { return points_.front().first; }
  int64_t last_key() const { return points_.back().first; }
  // The key before which about `rows` rows lie.
  int64_t KeyAfter(double rows) const;

 private:
  std::vector<std::pair<int64_t, double>> points_;
};

// Ranges of about rows_per_shard rows each that cover all keys.
std::vector<ShardRange> CutEvenly(const RowDensity& density, int64_t rows_per_shard);
// `count` short ranges, evenly spread over the rows, of about rows / count rows each; disjoint; all
// keys if there are not more rows than requested.
std::vector<std::pair<int64_t, int64_t>> SpreadRanges(const RowDensity& density, int64_t count,
                                                      int64_t rows);
// Ranges from the keys of every rows_per_shard-th row (the first one included) up to `end`.
std::vector<ShardRange> CutAtKeys(const std::vector<int64_t>& keys, int64_t end, int64_t rows,
                                  int64_t rows_per_shard);

// The number of rows of the ranges for PutShards: a shard's, or a piece's.
int64_t RowsPerRange(const DatasetOptions& options);
// Sets the dataset's shards from ranges of about RowsPerRange rows each, in the order of their
// rows: unchanged, or, for a mixed dataset, combined from ranges all over it. Also sets
// estimated_rows.
void PutShards(std::vector<ShardRange> ranges, const DatasetOptions& options, DatasetSpec* spec);
// The half-open ranges in which a shard is read.
using RowRanges = std::vector<std::pair<int64_t, int64_t>>;
RowRanges RangesOf(const ShardRange& shard);
// The ranges one after another as one stream, each opened when the previous one has ended.
using OpenRange = std::function<Result<std::unique_ptr<RowStream>>(int64_t begin, int64_t end)>;
Result<std::unique_ptr<RowStream>> ReadRanges(RowRanges ranges, OpenRange open);

// Inserts a range into DatasetSpec.shard_select: replaces the last {begin} and {end}, so that the
// user's own text, which precedes them, may contain such words.
std::string WithBounds(std::string_view shard_select, std::string_view begin, std::string_view end);

// "c0, c1, c2": the names of a dataset's columns inside our own statements, since the user's names
// may repeat or be empty.
std::string NumberedColumns(size_t count);
// "c4, c2" for the requested columns.
std::string ChosenColumns(const std::vector<size_t>& columns);

// The requested columns, in that order. InvalidArgument: there is no such column.
Result<Schema> ChosenSchema(const Schema& all, const std::vector<size_t>& columns);
void PutSchema(const Schema& schema, DatasetSpec* spec);

// A random text that no other process uses, for names of staging tables.
std::string RandomSuffix();

}  // namespace sluice::catalog
