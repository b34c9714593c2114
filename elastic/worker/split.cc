#include "elastic/worker/split.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "catalog/dataset.pb.h"
#include "elastic/queue/shard_order.h"
#include "models/features/calendar_parts.h"
#include "models/features/feature_transform.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {
namespace {

uint64_t HashCell(const RowBatch::Column& column, size_t row) {
  if (column.null[row] != 0) {
    return models::HashInteger(0);
  }
  switch (column.type) {
    case DataType::kText:
    case DataType::kBytes:
      return models::HashText(column.texts[row]);
    case DataType::kDouble:
      return models::HashText(FormatDouble(column.doubles[row]));
    case DataType::kBool:
    case DataType::kInt64:
    case DataType::kTimestamp:
      return models::HashInteger(static_cast<uint64_t>(column.int64s[row]));
  }
  return 0;
}

bool IsTrue(const RowBatch::Column& column, size_t row) {
  if (column.null[row] != 0) {
    return false;
  }
  if (column.type == DataType::kText || column.type == DataType::kBytes) {
    const std::string_view text = column.texts[row];
    return text == "t" || text == "true" || text == "1";
  }
  return column.NumberAt(row) != 0;
}

// For a cell that is not NULL, in the unit of the threshold; text that is not a time counts as very
// old.
double TimeAt(const RowBatch::Column& column, size_t row,
              const std::optional<models::TimeFormat>& format) {
  const bool text = column.type == DataType::kText || column.type == DataType::kBytes;
  if (!format || column.type == DataType::kTimestamp) {
    return text ? -std::numeric_limits<double>::infinity() : column.NumberAt(row);
  }
  const std::optional<int64_t> micros = text ? models::ParseTime(column.texts[row], *format)
                                             : models::TimeOfNumber(column.NumberAt(row), *format);
  return micros ? static_cast<double>(*micros) : -std::numeric_limits<double>::infinity();
}

}  // namespace

Result<SplitRule> SplitRule::Make(const plan::Split& split) {
  SplitRule rule;
  rule.seed_ = split.seed();
  rule.threshold_ = split.threshold();
  const double fraction = split.fraction();
  switch (split.kind()) {
    case plan::Split::NONE:
    case plan::Split::SELECT:
      return rule;
    case plan::Split::RANDOM:
      rule.kind_ = Kind::kRandom;
      break;
    case plan::Split::HASH:
      rule.kind_ = Kind::kHash;
      break;
    case plan::Split::TIME:
      rule.kind_ = Kind::kTime;
      if (!split.time_format().empty()) {
        rule.time_format_ =
            models::FindTimeFormat(split.time_format() == "iso" ? "" : split.time_format());
        if (!rule.time_format_) {
          return InvalidArgument(
              fmt::format("the plan splits by times written as '{}'", split.time_format()));
        }
      }
      break;
    case plan::Split::COLUMN:
      rule.kind_ = Kind::kColumn;
      break;
    default:
      return InvalidArgument(
          fmt::format("the plan has a split of unknown kind {}", static_cast<int>(split.kind())));
  }
  if (rule.kind_ == Kind::kRandom || rule.kind_ == Kind::kHash) {
    if (!(fraction >= 0 && fraction < 1)) {
      return InvalidArgument(
          fmt::format("a split keeps a fraction of at least 0 and below 1, not {}", fraction));
    }
    constexpr int kDigits = std::numeric_limits<uint64_t>::digits;
    rule.below_ = static_cast<uint64_t>(std::ldexp(fraction, kDigits));
    if (rule.kind_ == Kind::kRandom && split.folds() > 0) {
      if (split.fold() >= split.folds()) {
        return InvalidArgument(
            fmt::format("the plan names fold {} of {}", split.fold(), split.folds()));
      }
      rule.together_ = split.together();
      rule.folds_ = split.folds();
      rule.fold_ = split.fold();
      const uint64_t each = std::numeric_limits<uint64_t>::max() / split.folds();
      rule.from_ = each * split.fold();
      rule.below_ = split.fold() + 1 == split.folds() ? std::numeric_limits<uint64_t>::max()
                                                      : rule.from_ + each;
    }
  }
  if (rule.kind_ != Kind::kRandom) {
    if (split.column().empty()) {
      return InvalidArgument("the plan splits by a column and names none");
    }
    rule.columns_.push_back(split.column());
    rule.columns_.insert(rule.columns_.end(), split.finer_columns().begin(),
                         split.finer_columns().end());
  }
  return rule;
}

bool SplitRule::IsLate(std::span<const RowBatch::Column* const> columns, size_t row) const {
  if (std::any_of(columns.begin(), columns.end(),
                  [row](const auto* column) { return column->null[row] != 0; })) {
    return false;
  }
  if (columns.size() == 1) {
    return TimeAt(*columns.front(), row, time_format_) >= threshold_;
  }
  std::vector<double> parts;
  for (const RowBatch::Column* column : columns) {
    parts.push_back(column->NumberAt(row));
  }
  return models::PlaceInCalendar(parts) >= threshold_;
}

bool SplitRule::IsValidation(int64_t place, std::span<const RowBatch::Column* const> columns,
                             size_t row) const {
  SLUICE_CHECK(columns.size() == columns_.size(), "a rule by columns needs their cells");
  switch (kind_) {
    case Kind::kNone:
      return false;
    case Kind::kRandom: {
      if (together_ > 0) {
        // Runs of rows are assigned to the folds in turn.
        const uint64_t run = static_cast<uint64_t>(place) / together_;
        const uint64_t turn = models::HashInteger(seed_ ^ MixSeeds(run / folds_, 1));
        return (run + turn % folds_) % folds_ == fold_;
      }
      const uint64_t hash = models::HashInteger(seed_ ^ MixSeeds(static_cast<uint64_t>(place), 0));
      return hash >= from_ && hash < below_;
    }
    case Kind::kHash:
      return models::HashInteger(seed_ ^ HashCell(*columns.front(), row)) < below_;
    case Kind::kTime:
      return IsLate(columns, row);
    case Kind::kColumn:
      return IsTrue(*columns.front(), row);
  }
  return false;
}

std::vector<int64_t> PlacesOf(const catalog::DatasetSpec& dataset) {
  std::vector<int64_t> places;
  int64_t rows = 0;
  for (const catalog::ShardRange& shard : dataset.shards()) {
    places.push_back(rows);
    rows += shard.estimated_rows();
  }
  return places;
}

RowPlaces::RowPlaces(const catalog::ShardRange& shard, int64_t first)
    : shard_(&shard), next_(first) {
  Enter(0);
}

void RowPlaces::Enter(int piece) {
  if (piece >= shard_->pieces_size()) {  // of no pieces, or of the last one: as many as there are
    left_ = std::numeric_limits<int64_t>::max();
    return;
  }
  piece_ = piece;
  next_ = shard_->pieces(piece).first_row();
  left_ = shard_->pieces(piece).estimated_rows();
}

int64_t RowPlaces::Next() {
  while (left_ == 0) {
    Enter(piece_ + 1);
  }
  --left_;
  return next_++;
}

}  // namespace sluice::elastic
