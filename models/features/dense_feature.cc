#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/bad_rows.h"
#include "models/features/dense_feature_internal.h"
#include "models/model.pb.h"

namespace sluice::models {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();
// A text cell with more floats is not a feature but a file.
constexpr uint32_t kWidestTensor = 1U << 20;

float ToFloat(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace

Result<DenseFeature> DenseFeature::Make(const Feature& feature, const InputColumn& column,
                                        FeatureTransform::Target target) {
  DenseFeature dense;
  dense.column_ = column.name();
  dense.odd_is_missing_ = column.odd_is_missing();
  dense.input_ = feature.inputs(0);
  dense.tensor_ = feature.kind() == Feature::TENSOR;
  dense.trees_ = target == FeatureTransform::Target::kTrees;
  dense.timestamp_ = static_cast<DataType>(column.type()) == DataType::kTimestamp;
  dense.flag_ = static_cast<DataType>(column.type()) == DataType::kBool;
  dense.unit_ = feature.unit();
  if (feature.decimal_comma()) {
    dense.thousands_ = '.';
  } else if (feature.unit() == kThousandsUnit) {
    dense.thousands_ = ',';
  }
  const std::optional<TimeFormat> format = FindTimeFormat(column.time_format());
  const std::optional<TimeMeasure> measure = FindTimeMeasure(feature.time_part());
  if (!format || !measure) {
    return InvalidArgument(fmt::format("unknown time '{}' or part of one '{}'",
                                       column.time_format(), feature.time_part()));
  }
  dense.time_ = !dense.tensor_ && !feature.time_part().empty();
  dense.time_format_ = *format;
  dense.time_measure_ = *measure;
  if (!dense.trees_ || feature.centred()) {
    dense.offset_ = feature.offset();
    dense.scale_ = feature.scale();
    if (dense.scale_ == 0 || !std::isfinite(dense.scale_) || !std::isfinite(dense.offset_)) {
      return InvalidArgument(fmt::format("offset {} and scale {} must be finite, scale not 0",
                                         dense.offset_, dense.scale_));
    }
  }
  if (dense.trees_) {
    constexpr double kBeyondInt64 = 0x1p63;
    const bool whole = dense.offset_ == std::floor(dense.offset_);
    if (feature.centred() && whole && std::abs(dense.offset_) < kBeyondInt64) {
      dense.whole_offset_ = static_cast<int64_t>(dense.offset_);
    }
  } else {
    dense.indicator_ = feature.null_indicator();
    dense.logarithm_ = feature.logarithm();
    dense.lowest_ = feature.lowest();
    dense.highest_ = feature.highest();
    dense.bounded_ = dense.lowest_ != 0 || dense.highest_ != 0;
    if (!(dense.lowest_ <= dense.highest_)) {
      return InvalidArgument(
          fmt::format("no value lies between {} and {}", dense.lowest_, dense.highest_));
    }
  }
  if (dense.tensor_) {
    if (feature.width() == 0 || feature.width() > kWidestTensor) {
      return InvalidArgument(fmt::format("width {} of a tensor must be between 1 and {}",
                                         feature.width(), kWidestTensor));
    }
    dense.values_ = feature.width();
    ASSIGN_OR_RETURN(dense.layout_, CellLayout::Make(feature.format()));
    // An absent index is 0 for a network; XGBoost takes it as missing, as in its own sparse input.
    dense.absent_ = dense.trees_ ? kMissing : dense.Scaled(0);
  }
  return dense;
}

float DenseFeature::Scaled(double value) const {
  if (logarithm_ && value != 0) {
    value = std::copysign(std::log1p(std::abs(value)), value);
  }
  return ToFloat((value - offset_) * scale_);
}

float DenseFeature::ScaledInteger(int64_t value) const {
  // Without a sign, the difference of any two of them has room.
  const auto high = static_cast<uint64_t>(std::max(value, *whole_offset_));
  const auto low = static_cast<uint64_t>(std::min(value, *whole_offset_));
  const auto distance = static_cast<double>(high - low);
  return ToFloat((value < *whole_offset_ ? -distance : distance) * scale_);
}

void DenseFeature::WriteMissing(float* out) const {
  std::fill_n(out, values_, trees_ ? kMissing : 0.0F);
  if (indicator_) {
    out[values_] = 1;
  }
}

template <typename Read>
void DenseFeature::Fill(const RowBatch::Column& column, size_t rows, float* out, size_t stride,
                        Read read) const {
  const uint8_t* null = column.null.data();
  if (indicator_ || logarithm_ || trees_) {
    for (size_t row = 0; row < rows; ++row, out += stride) {
      const double value = null[row] != 0 ? std::numeric_limits<double>::quiet_NaN() : read(row);
      if (!std::isfinite(value)) {
        WriteMissing(out);
        continue;
      }
      out[0] = Scaled(value);
      if (indicator_) {
        out[1] = 0;
      }
    }
    return;
  }
  // Fast path for the common case, without branches. x - x is 0 only if x is finite.
  const double offset = offset_;
  const double scale = scale_;
  for (size_t row = 0; row < rows; ++row, out += stride) {
    const double value = read(row);
    const bool present = null[row] == 0 && value - value == 0;
    out[0] = present ? ToFloat((value - offset) * scale) : 0.0F;
  }
}

Status DenseFeature::ApplyNumbers(const RowBatch::Column& column, size_t rows, float* out,
                                  size_t stride) const {
  if (column.type == DataType::kDouble) {
    Fill(column, rows, out, stride,
         [values = column.doubles.data()](size_t row) { return values[row]; });
  } else if (whole_offset_) {
    for (size_t row = 0; row < rows; ++row, out += stride) {
      out[0] = column.null[row] != 0 ? kMissing : ScaledInteger(column.int64s[row]);
    }
  } else {
    Fill(column, rows, out, stride,
         [values = column.int64s.data()](size_t row) { return static_cast<double>(values[row]); });
  }
  return OkStatus();
}

template <typename Read>
Status DenseFeature::ApplyCells(const RowBatch::Column& column, size_t rows, bool learning,
                                float* out, size_t stride, OddCells* odd, Read read) const {
  // So many cells, all odd, are in another form than those of the training.
  constexpr size_t kTooMany = 100;
  const bool text = IsText(column);
  size_t present = 0;
  Status first_odd;
  for (size_t row = 0; row < rows; ++row, out += stride) {
    // A blank cell is how file imports store a missing value.
    if (column.null[row] != 0 || (text && TrimBlanks(column.texts[row]).empty())) {
      WriteMissing(out);
      continue;
    }
    ++present;
    Status status = read(row, out);
    if (status.ok()) {
      continue;
    }
    if (!odd_is_missing_) {
      return status;
    }
    WriteMissing(out);
    if (++odd->cells == 1) {
      odd->first =
          text ? std::string(column.texts[row]) : FormatValue(column.ValueAt(row), column.type);
      first_odd = std::move(status);
    }
  }
  return !learning && odd->cells >= kTooMany && odd->cells == present ? first_odd : OkStatus();
}

Status DenseFeature::ReadText(const RowBatch::Column& column, size_t row, float* out) const {
  const std::string_view cell = column.texts[row];
  std::optional<double> value =
      thousands_ == 0 ? ParseNumber(cell)
                      : ParseGroupedNumber(cell, thousands_, thousands_ == '.' ? ',' : '.');
  if (!value.has_value() && timestamp_) {
    if (const std::optional<int64_t> micros = ParseTimestamp(cell)) {
      value = static_cast<double>(*micros);
    }
  }
  if (const std::optional<bool> flag = ParseFlag(cell); flag_ && flag.has_value()) {
    value = *flag ? 1 : 0;
  }
  if (!value.has_value() && IsMissingWord(cell)) {
    WriteMissing(out);
    return OkStatus();
  }
  // A number without the unit may be in any other.
  if (!unit_.empty() && (!value.has_value() || (thousands_ == 0 && *value != 0))) {
    const std::optional<UnitNumber> found = ParseUnitNumber(cell);
    if (!found || found->unit != unit_) {
      return BadCell(column_, cell,
                     fmt::format("expected a number as '{}', where # is the number", unit_));
    }
    value = found->number;
  }
  if (!value.has_value()) {
    return BadCell(column_, cell, "expected a number, found text")
        .Hint(fmt::format("{}; or train with COLUMN CATEGORY_HASH({}, 100) to take the column as a "
                          "category",
                          KeepRowsWithoutText(column_, cell), column_));
  }
  if (!std::isfinite(*value)) {
    WriteMissing(out);
    return OkStatus();
  }
  const std::optional<int64_t> whole = whole_offset_ ? ParseInteger(cell) : std::nullopt;
  out[0] = whole ? ScaledInteger(*whole) : Scaled(*value);
  if (indicator_) {
    out[1] = 0;
  }
  return OkStatus();
}

Status DenseFeature::PutAt(std::string_view index_text, double value, std::string_view cell,
                           float* out) const {
  const std::optional<int64_t> index = ParseInteger(index_text);
  if (!index.has_value() || *index < 0) {
    return BadCell(
        column_, cell,
        fmt::format("expected an index from 0 to {}, found '{}'", values_ - 1, index_text));
  }
  if (static_cast<uint64_t>(*index) >= values_) {
    return BadCell(column_, cell,
                   fmt::format("index {} does not fit into {} elements", *index, values_))
        .Hint(fmt::format("give the size: COLUMN SPARSE({}, {})", column_, *index + 1));
  }
  if (std::isfinite(value)) {
    out[*index] = Scaled(value);
  }
  return OkStatus();
}

Status DenseFeature::ReadElements(std::string_view cell, float* out) const {
  CellCursor cursor(cell, layout_);
  std::string_view element;
  size_t count = 0;
  while (cursor.Next(&element)) {
    const std::optional<double> value = ParseNumber(element);
    if (!value.has_value()) {
      return BadCell(column_, cell, fmt::format("expected numbers, found '{}'", element));
    }
    if (count < values_) {
      out[count] = std::isfinite(*value) ? Scaled(*value) : (trees_ ? kMissing : 0.0F);
    }
    ++count;
  }
  if (count != values_) {
    return BadCell(column_, cell,
                   fmt::format("should be csv format dense tensor of {} element(s), but got {} "
                               "element(s)",
                               values_, count));
  }
  return OkStatus();
}

Status DenseFeature::ReadTensor(std::string_view cell, float* out) const {
  if (indicator_) {
    out[values_] = 0;
  }
  if (!layout_.key_value && !layout_.sparse) {
    return ReadElements(cell, out);
  }
  std::fill_n(out, values_, absent_);
  CellCursor cursor(cell, layout_);
  std::string_view element;
  while (cursor.Next(&element)) {
    std::string_view index = element;
    double value = 1;
    if (layout_.key_value) {
      std::string_view text;
      const std::optional<double> weight =
          SplitPair(element, layout_, &index, &text) ? ParseNumber(text) : std::nullopt;
      if (!weight.has_value()) {
        return BadCell(column_, cell,
                       fmt::format("expected index{}number, found '{}'",
                                   layout_.key_value_delimiter, element));
      }
      value = *weight;
    }
    RETURN_IF_ERROR(PutAt(index, value, cell, out));
  }
  return OkStatus();
}

double DenseFeature::TimeValue(const RowBatch::Column& column, size_t row) const {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  // PostgreSQL's infinities, and times so close to them that their days would overflow.
  constexpr int64_t kMargin = 400LL * 86'400'000'000;
  std::optional<int64_t> micros;
  if (IsText(column)) {
    micros = ParseTime(column.texts[row], time_format_);
    if (!micros) {
      micros = ParseTime(column.texts[row], TimeFormat::kIso);
    }
  } else if (column.type == DataType::kTimestamp) {
    micros = column.int64s[row];
  } else {
    micros = TimeOfNumber(column.NumberAt(row), time_format_);
  }
  const bool known = micros && *micros > std::numeric_limits<int64_t>::min() + kMargin &&
                     *micros < std::numeric_limits<int64_t>::max() - kMargin;
  if (!known) {
    return kNone;
  }
  const double value = MeasureTime(*micros, time_measure_);
  return bounded_ ? std::clamp(value, lowest_, highest_) : value;
}

Status DenseFeature::ReadTime(const RowBatch::Column& column, size_t row, float* out) const {
  const double value = TimeValue(column, row);
  if (!std::isfinite(value)) {
    if (IsText(column) && !IsMissingWord(column.texts[row])) {
      return BadCell(column_, column.texts[row],
                     fmt::format("expected a time such as {}", TimeFormatExample(time_format_)))
          .Hint("select NULL in its place, or " + KeepRowsWithoutText(column_, column.texts[row]));
    }
    WriteMissing(out);
    return OkStatus();
  }
  out[0] = Scaled(value);
  if (indicator_) {
    out[1] = 0;
  }
  return OkStatus();
}

Status DenseFeature::Apply(const RowBatch::Column& column, size_t rows, bool learning, float* out,
                           size_t stride, OddCells* odd) const {
  if (time_) {
    return ApplyCells(column, rows, learning, out, stride, odd,
                      [&](size_t row, float* cell) { return ReadTime(column, row, cell); });
  }
  if (!IsText(column)) {
    if (tensor_ && values_ > 1) {
      return InvalidArgument(
          fmt::format("column '{}' holds {}, but the model was trained on texts "
                      "of {} numbers",
                      column_, DataTypeName(column.type), values_));
    }
    return ApplyNumbers(column, rows, out, stride);
  }
  return ApplyCells(column, rows, learning, out, stride, odd, [&](size_t row, float* cell) {
    return tensor_ ? ReadTensor(column.texts[row], cell) : ReadText(column, row, cell);
  });
}

}  // namespace sluice::models
