#include "catalog/statistics_builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "base/mix_bits.h"
#include "base/utf8.h"

namespace sluice::catalog {
namespace {

// Duj1 of Haas and Stokes, as ANALYZE in PostgreSQL: n rows sampled of N, d distinct values among
// them, f1 of which occurred once.
double EstimateDistinct(double sampled, double total, double distinct, double once) {
  if (once == 0 || sampled >= total) {
    return distinct;  // every value occurred again: there are hardly any others
  }
  const double estimate = sampled * distinct / (sampled - once + once * sampled / total);
  return std::clamp(estimate, distinct, total);
}

// The estimator of Charikar, Chaudhuri, Motwani and Narasayya (2000), whose ratio to the truth is
// at most sqrt(N/n): each value that occurred once stands for sqrt(N/n) values.
double DistinctAtMost(double sampled, double total, double distinct, double once) {
  if (sampled <= 0 || total <= sampled) {
    return distinct;
  }
  return std::min(total, std::sqrt(total / sampled) * once + (distinct - once));
}

// Distinguishes long texts: by size, and by hashes of the text and of its second half.
std::array<uint64_t, 3> Fingerprint(std::string_view text) {
  const std::hash<std::string_view> hash;
  return {text.size(), hash(text), hash(text.substr(text.size() / 2))};
}

size_t TextBytes(const Value& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return text == nullptr ? 0 : text->size();
}

}  // namespace

int64_t ExactRowLimit(const Schema& schema, const StatisticsOptions& options) {
  constexpr int64_t kFewest = 1'000;
  const auto columns = static_cast<int64_t>(std::max<size_t>(schema.columns.size(), 1));
  return std::min(options.exact_below_rows, std::max(kFewest, kStatisticsCells / columns));
}

StatisticsBuilder::StatisticsBuilder(const Schema& schema, const StatisticsOptions& options)
    : options_(options), columns_(schema.columns.size()) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].type = schema.columns[i].type;
  }
}

void StatisticsBuilder::Add(const RowBatch& batch) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    AddColumn(batch.columns[i], batch.rows, &columns_[i]);
  }
  AddToSample(batch);
  rows_ += static_cast<int64_t>(batch.rows);
}

// When there are too many rows, about half of them are dropped: so the sample is spread evenly over
// all rows without knowing their number in advance. Which half depends on a hash of the row's
// number, since rows may alternate with any period.
void StatisticsBuilder::AddToSample(const RowBatch& batch) {
  const auto limit = static_cast<size_t>(std::max<int64_t>(options_.sample_rows, 1));
  for (size_t row = 0; row < batch.rows; ++row) {
    const uint64_t hash = MixBits(static_cast<uint64_t>(rows_) + row);
    while (IsSampled(hash) &&
           (sample_.size() == limit || (sample_bytes_ > kSampleTextBytes && sample_.size() > 1))) {
      ThinSample();
    }
    if (!IsSampled(hash)) {
      continue;
    }
    SampledRow& sampled = sample_.emplace_back(SampledRow{hash, {}});
    sampled.cells.reserve(columns_.size());
    for (size_t i = 0; i < columns_.size(); ++i) {
      Value& cell = sampled.cells.emplace_back(batch.columns[i].ValueAt(row));
      if (TextBytes(cell) > kSampleCellBytes) {
        auto& text = std::get<std::string>(cell);
        text = std::string(CutToBytes(text, kSampleCellBytes));
      }
      sample_bytes_ += TextBytes(cell);
    }
  }
}

void StatisticsBuilder::ThinSample() {
  sample_thinned_by_ *= 2;
  std::erase_if(sample_, [this](const SampledRow& row) { return !IsSampled(row.hash); });
  sample_bytes_ = 0;
  for (const SampledRow& row : sample_) {
    for (const Value& cell : row.cells) {
      sample_bytes_ += TextBytes(cell);
    }
  }
}

void StatisticsBuilder::AddColumn(const RowBatch::Column& column, size_t rows,
                                  ColumnCounts* counts) {
  for (size_t row = 0; row < rows; ++row) {
    if (column.null[row] != 0) {
      ++counts->nulls;
      continue;
    }
    switch (counts->type) {
      case DataType::kText:
      case DataType::kBytes: {
        const std::string_view text = column.texts[row];
        counts->text_bytes += static_cast<double>(text.size());
        if (text.size() > kLongTextBytes) {
          ++counts->long_texts[Fingerprint(text)];
          break;
        }
        const auto found = counts->texts.find(text);
        if (found != counts->texts.end()) {
          ++found->second;
        } else {
          counts->texts.emplace(text, 1);
        }
        break;
      }
      case DataType::kDouble: {
        const double number = column.doubles[row] == 0 ? 0.0 : column.doubles[row];  // not -0
        ++counts->integers[std::bit_cast<int64_t>(std::isnan(number) ? std::nan("") : number)];
        AddNumber(number, counts);
        break;
      }
      case DataType::kBool:
      case DataType::kInt64:
      case DataType::kTimestamp:
        ++counts->integers[column.int64s[row]];
        AddNumber(static_cast<double>(column.int64s[row]), counts);
        break;
    }
  }
}

// Welford's update: exact enough for any magnitude, and deterministic for a given order of rows.
void StatisticsBuilder::AddNumber(double number, ColumnCounts* counts) {
  if (!std::isfinite(number)) {
    return;
  }
  if (counts->finite == 0) {
    counts->min = number;
    counts->max = number;
  }
  ++counts->finite;
  counts->min = std::min(counts->min, number);
  counts->max = std::max(counts->max, number);
  const double delta = number - counts->mean;
  counts->mean += delta / static_cast<double>(counts->finite);
  counts->squares += delta * (number - counts->mean);
}

SelectStatistics StatisticsBuilder::Finish(int64_t total_rows, bool exact) const {
  SelectStatistics statistics;
  statistics.rows = exact ? rows_ : std::max(total_rows, rows_);
  statistics.exact_rows = exact;
  statistics.sample.reserve(sample_.size());
  for (const SampledRow& row : sample_) {
    statistics.sample.push_back(row.cells);
  }
  for (const ColumnCounts& counts : columns_) {
    statistics.columns.push_back(FinishColumn(counts, statistics.rows, exact));
  }
  return statistics;
}

ColumnStatistics StatisticsBuilder::FinishColumn(const ColumnCounts& counts, int64_t total_rows,
                                                 bool exact) const {
  ColumnStatistics statistics;
  statistics.exact = exact;
  if (rows_ == 0) {
    return statistics;
  }
  const auto sampled = static_cast<double>(rows_);
  const double present = sampled - static_cast<double>(counts.nulls);
  statistics.null_fraction = static_cast<double>(counts.nulls) / sampled;
  statistics.has_range = counts.finite > 0;
  if (statistics.has_range) {
    statistics.min = counts.min;
    statistics.max = counts.max;
    statistics.mean = counts.mean;
    statistics.standard_deviation = std::sqrt(counts.squares / static_cast<double>(counts.finite));
  }
  statistics.average_length = present > 0 ? counts.text_bytes / present : 0;

  // Most values of a column of measurements are not among its most common ones; this is found out
  // without formatting or sorting them (500 columns took seconds).
  std::vector<int64_t> times;
  times.reserve(counts.texts.size() + counts.integers.size() + counts.long_texts.size());
  for (const auto& [fingerprint, count] : counts.long_texts) {
    times.push_back(count);
  }
  for (const auto& [text, count] : counts.texts) {
    times.push_back(count);
  }
  for (const auto& [bits, count] : counts.integers) {
    times.push_back(count);
  }
  const auto distinct = static_cast<double>(times.size());
  const auto once = static_cast<double>(std::count(times.begin(), times.end(), 1));
  const auto kept = static_cast<size_t>(std::max<int64_t>(options_.common_values, 0));
  int64_t least = 0;  // the lowest count among them
  if (kept > 0 && times.size() > kept) {
    const auto last = times.begin() + static_cast<std::ptrdiff_t>(kept - 1);
    std::nth_element(times.begin(), last, times.end(), std::greater<>());
    least = *last;
  }
  std::vector<std::pair<int64_t, std::string>> values;
  for (const auto& [text, count] : counts.texts) {
    if (count >= least) {
      values.emplace_back(count, text);
    }
  }
  for (const auto& [bits, count] : counts.integers) {
    if (count < least) {
      continue;
    }
    Value value = bits;
    if (counts.type == DataType::kDouble) {
      value = std::bit_cast<double>(bits);
    } else if (counts.type == DataType::kBool) {
      value = bits != 0;
    }
    values.emplace_back(count, FormatValue(value, counts.type));
  }
  statistics.distinct =
      exact ? distinct
            : EstimateDistinct(present, static_cast<double>(total_rows) * (present / sampled),
                               distinct, once);
  statistics.distinct_at_most = std::max(
      statistics.distinct,
      exact ? distinct
            : DistinctAtMost(present, static_cast<double>(total_rows) * (present / sampled),
                             distinct, once));
  statistics.all_values = exact && times.size() <= kept && counts.long_texts.empty();
  const size_t count = std::min(kept, values.size());
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  for (size_t i = 0; i < count; ++i) {
    statistics.common_values.emplace_back(std::move(values[i].second),
                                          static_cast<double>(values[i].first) / sampled);
  }
  return statistics;
}

}  // namespace sluice::catalog
