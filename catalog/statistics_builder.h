#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/row_batch.h"
#include "catalog/data_source.h"

namespace sluice::catalog {

// The most cells that statistics read: a very wide SELECT is described by fewer rows rather than in
// more time.
inline constexpr int64_t kStatisticsCells = 4'000'000;
// Rows of a sample of a large table, and over how many places of the table they are spread.
inline constexpr int64_t kStatisticsSampleRows = 20'000;
inline constexpr int64_t kStatisticsSampleRanges = 128;
// Rows read at a time.
inline constexpr size_t kStatisticsBatchRows = 2'048;
// Texts longer than this are counted, but never among the common values: no category is that long.
inline constexpr size_t kLongTextBytes = 4'096;
// The size of the kept texts: fewer rows are kept if they contain documents.
inline constexpr size_t kSampleTextBytes = size_t{32} << 20;
// Of a longer cell the beginning is kept: what a column means is read from it, over and over, and
// nothing cancels that.
inline constexpr size_t kSampleCellBytes = size_t{1} << 20;

// Up to this many rows are all read: exact_below_rows, or fewer if there are many columns. Depends
// on nothing that differs between databases.
int64_t ExactRowLimit(const Schema& schema, const StatisticsOptions& options);

// Turns rows into SelectStatistics. The same rows in the same order give the same numbers, bit for
// bit, whichever database they came from. Not thread-safe.
class StatisticsBuilder {
 public:
  StatisticsBuilder(const Schema& schema, const StatisticsOptions& options);

  void Add(const RowBatch& batch);
  int64_t rows() const { return rows_; }
  // `total_rows`: the number of rows of the SELECT; `exact`: all of them were added.
  SelectStatistics Finish(int64_t total_rows, bool exact) const;

 private:
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct ColumnCounts {
    DataType type = DataType::kText;
    int64_t nulls = 0;
    int64_t finite = 0;  // numbers that are neither NaN nor infinite
    double min = 0, max = 0, mean = 0, squares = 0;
    double text_bytes = 0;
    std::unordered_map<std::string, int64_t, TextHash, std::equal_to<>> texts;
    std::map<std::array<uint64_t, 3>, int64_t> long_texts;  // by fingerprint
    std::unordered_map<int64_t, int64_t> integers;          // doubles by their bits
  };
  void AddToSample(const RowBatch& batch);
  void ThinSample();
  bool IsSampled(uint64_t hash) const { return hash % sample_thinned_by_ == 0; }
  static void AddColumn(const RowBatch::Column& column, size_t rows, ColumnCounts* counts);
  static void AddNumber(double number, ColumnCounts* counts);
  ColumnStatistics FinishColumn(const ColumnCounts& counts, int64_t total_rows, bool exact) const;

  struct SampledRow {
    uint64_t hash = 0;  // of the row's number
    std::vector<Value> cells;
  };
  const StatisticsOptions options_;
  std::vector<ColumnCounts> columns_;
  std::vector<SampledRow> sample_;
  size_t sample_bytes_ = 0;         // of its texts
  uint64_t sample_thinned_by_ = 1;  // one in this many rows is kept; a power of 2
  int64_t rows_ = 0;
};

}  // namespace sluice::catalog
