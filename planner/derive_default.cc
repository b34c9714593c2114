#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "planner/derive_internal.h"

namespace sluice::planner {
namespace {

using models::Categorizer;
using models::ColumnFormatKind;
using models::Feature;

constexpr double kMostVocabulary = 1000;
// key:value cells wider than this become ids with weights instead of mostly empty floats.
constexpr int64_t kWidestDefaultTensor = 1024;
constexpr int64_t kMostTensorIds = 1 << 20;
// So many distinct texts among so many rows: an identifier, of which there is nothing to learn.
constexpr double kIdentifierShare = 0.95;
constexpr int64_t kIdentifierRows = 100;
constexpr int64_t kMicrosPerHour = 3'600'000'000;
constexpr int64_t kMicrosPerDay = 24 * kMicrosPerHour;
constexpr int64_t kDaysPerMonth = 28;

struct TimePart {
  const char* name;
  uint32_t values;
  int64_t step;  // micros between which it changes
};
constexpr TimePart kTimeParts[] = {{"hour", 24, kMicrosPerHour},
                                   {"weekday", 7, kMicrosPerDay},
                                   {"month", 12, kDaysPerMonth* kMicrosPerDay}};

int64_t FloorDivide(int64_t value, int64_t by) {
  return value / by - (value % by < 0 ? 1 : 0);
}

}  // namespace

NumberFacts FeatureMaker::NumbersOf(const ColumnFacts& column, bool logarithm) const {
  NumberFacts facts;
  if (column.is_text()) {
    facts = {column.shape.mean, column.shape.deviation, column.shape.min, column.shape.max};
  } else if (column.statistics.has_range) {
    facts = {column.statistics.mean, column.statistics.standard_deviation, column.statistics.min,
             column.statistics.max};
  }
  const bool finite = std::isfinite(facts.mean) && std::isfinite(facts.deviation) &&
                      std::isfinite(facts.min) && std::isfinite(facts.max);
  if (logarithm || !finite) {  // NaN and infinity count as NULL, so the sample's others decide
    std::vector<double> numbers = SampleNumbers(column);
    for (double& number : numbers) {
      number = logarithm ? std::copysign(std::log1p(std::abs(number)), number) : number;
    }
    double sum = 0;
    double squares = 0;
    for (const double number : numbers) {
      sum += number;
    }
    const double mean = numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
    for (const double number : numbers) {
      squares += (number - mean) * (number - mean);
    }
    facts.mean = mean;
    facts.deviation =
        numbers.empty() ? 1 : std::sqrt(squares / static_cast<double>(numbers.size()));
    facts.min = numbers.empty() ? 0 : numbers.front();
    facts.max = numbers.empty() ? 1 : numbers.back();
  }
  if (!(facts.deviation > 0)) {
    facts.deviation = 1;
  }
  return facts;
}

void FeatureMaker::AddNumber(const ColumnFacts& column, FeaturePart part) {
  Feature* feature = Add(column.name(), {column.index}, part);
  feature->set_kind(Feature::NUMERIC);
  feature->set_scale(1);
  if (trees()) {
    return;  // trees see the number itself, and NULL as missing
  }
  const NumberFacts facts = NumbersOf(column, /*logarithm=*/false);
  feature->set_offset(facts.mean);
  feature->set_scale(1 / facts.deviation);
  feature->set_null_indicator(column.has_null());
}

void FeatureMaker::Represent(Feature* feature, const char* combiner) const {
  feature->set_kind(Feature::CATEGORY);
  feature->set_combiner(combiner);
  const bool embeds = input_.family == models::ModelFamily::kDeep ||
                      input_.family == models::ModelFamily::kWideDeep;
  if (!embeds || feature->part() == Feature::WIDE) {
    feature->set_representation(Feature::INDICATOR);
    return;
  }
  feature->set_representation(Feature::EMBEDDING);
  feature->set_dimension(EmbeddingDimension(feature->categorizer().buckets()));
  // Small initial values: with a deviation of 1/sqrt(dimension) the census network reaches an AUC
  // lower by 0.0005 to 0.001 (three seeds each).
  feature->set_initializer("uniform");
}

void FeatureMaker::AddTextCategory(const ColumnFacts& column, FeaturePart part) {
  Feature* feature = Add(column.name(), {column.index}, part);
  double covered = 0;
  std::vector<std::string> values =
      KnownValues(column, static_cast<size_t>(kMostVocabulary), &covered);
  const double distinct = column.statistics.distinct;
  const bool known = column.statistics.all_values || covered >= kLeastCovered;
  if (distinct <= kMostVocabulary && known) {
    FillVocabulary(std::move(values), feature->mutable_categorizer());
  } else {
    FillHash(HashBuckets(distinct), feature->mutable_categorizer());
    const int64_t rows = input_.statistics.rows;
    if (rows >= kIdentifierRows && distinct >= kIdentifierShare * static_cast<double>(rows)) {
      Note(
          fmt::format("{} has a different value in nearly every row: an identifier? Leave it out "
                      "of the SELECT if so",
                      column.name()));
    }
  }
  Represent(feature, "sum");
}

void FeatureMaker::AddTimestamp(const ColumnFacts& column, FeaturePart part) {
  if (!column.is_text()) {
    AddNumber(column, part);
  }
  for (const TimePart& time_part : kTimeParts) {
    // A part that never changes in the sample (the hour of a date) has nothing to say.
    std::optional<int64_t> first;
    bool varies = input_.statistics.sample.empty();
    for (const std::vector<Value>& row : input_.statistics.sample) {
      const Value& cell = row[column.index];
      std::optional<int64_t> micros;
      if (const auto* number = std::get_if<int64_t>(&cell)) {
        micros = *number;
      } else if (const auto* text = std::get_if<std::string>(&cell)) {
        micros = models::ParseTimestamp(*text);
      }
      if (micros) {
        int64_t value = FloorDivide(*micros, time_part.step);
        value = time_part.step == kMicrosPerHour ? value % 24 : value;
        varies = varies || (first && *first != value);
        first = first.value_or(value);
      }
    }
    if (!varies) {
      continue;
    }
    Feature* feature =
        Add(fmt::format("{}_{}", column.name(), time_part.name), {column.index}, part);
    Categorizer* categorizer = feature->mutable_categorizer();
    categorizer->set_kind(Categorizer::TIME_PART);
    categorizer->set_time_part(time_part.name);
    categorizer->set_oov_bucket(-1);
    categorizer->set_null_bucket(time_part.values);
    categorizer->set_buckets(time_part.values + 1);
    Represent(feature, "sum");
  }
}

void FeatureMaker::AddShapedText(const ColumnFacts& column, FeaturePart part) {
  const models::ColumnFormat& format = column.shape.format;
  Feature* feature = Add(column.name(), {column.index}, part);
  models::TensorFormat* cells = feature->mutable_format();
  cells->set_kind(format.kind == ColumnFormatKind::kKeyValue ? models::TensorFormat::KEY_VALUE
                                                             : models::TensorFormat::CSV);
  cells->set_delimiter(format.delimiter);
  cells->set_key_value_delimiter(format.key_value_delimiter);
  cells->set_sparse(format.kind != ColumnFormatKind::kDenseCsv);
  const int64_t width = format.kind == ColumnFormatKind::kDenseCsv
                            ? format.width
                            : std::min(format.max_index + 1, kMostTensorIds);
  cells->add_shape(width);
  const bool floats = format.kind == ColumnFormatKind::kDenseCsv ||
                      (format.kind == ColumnFormatKind::kKeyValue && width <= kWidestDefaultTensor);
  if (floats) {
    feature->set_kind(Feature::TENSOR);
    feature->set_width(static_cast<uint32_t>(width));
    feature->set_scale(1);
    if (format.kind == ColumnFormatKind::kDenseCsv && !trees() && column.shape.deviation > 0) {
      feature->set_offset(column.shape.mean);
      feature->set_scale(1 / column.shape.deviation);
    }
    return;
  }
  feature->set_weighted(format.kind == ColumnFormatKind::kKeyValue);
  if (format.max_index < kMostTensorIds) {
    FillIdentity(static_cast<uint32_t>(width), feature->mutable_categorizer());
  } else {
    FillHash(HashBuckets(static_cast<double>(kMostTensorIds)), feature->mutable_categorizer());
  }
  WithoutNullBucket(feature->mutable_categorizer());
  Represent(feature, feature->weighted() ? "sum" : "mean");
}

Status FeatureMaker::AddDerived(const ColumnFacts& column, FeaturePart part, Span span) {
  switch (column.info.type) {
    case DataType::kBool:
    case DataType::kInt64:
    case DataType::kDouble:
      AddNumber(column, part);
      return OkStatus();
    case DataType::kTimestamp:
      AddTimestamp(column, part);
      return OkStatus();
    case DataType::kBytes:
      return InvalidArgument(fmt::format("column '{}' is {}, which cannot be a feature",
                                         column.name(), column.info.database_type))
          .At(span)
          .Hint("leave it out of the SELECT");
    case DataType::kText:
      break;
  }
  switch (column.shape.format.kind) {
    case ColumnFormatKind::kNumber:
      AddNumber(column, part);
      break;
    case ColumnFormatKind::kTimestamp:
      AddTimestamp(column, part);
      break;
    case ColumnFormatKind::kDenseCsv:
    case ColumnFormatKind::kSparseCsv:
    case ColumnFormatKind::kKeyValue:
      AddShapedText(column, part);
      break;
    case ColumnFormatKind::kText:
      IsFreeText(column) ? AddWords(column, part) : AddTextCategory(column, part);
      break;
  }
  return OkStatus();
}

}  // namespace sluice::planner
