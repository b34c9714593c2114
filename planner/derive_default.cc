#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "planner/derive_internal.h"
#include "planner/free_text.h"
#include "planner/rounded_number.h"

namespace sluice::planner {
namespace {

using models::ColumnFormatKind;
using models::Feature;

constexpr double kMaxVocabulary = 1000;
// Wider key:value cells become ids with weights instead of mostly empty floats.
constexpr int64_t kWidestDefaultTensor = 1024;
constexpr int64_t kMaxTensorIds = 1 << 20;
// A larger share of distinct texts means an identifier, from which nothing can be learnt.
constexpr double kIdentifierShare = 0.95;
constexpr int64_t kIdentifierRows = 100;

}  // namespace

void MendMoments(double min, double max, double* mean, double* deviation) {
  const double half = max / 2 - min / 2;
  if (!(half > 0) || !std::isfinite(half)) {
    return;
  }
  if (!(*deviation > 0) || !std::isfinite(*deviation)) {
    *deviation = std::max(half, std::numeric_limits<double>::min());
  }
  if (!std::isfinite(*mean)) {
    *mean = min / 2 + max / 2;
  }
}

NumberFacts FeatureMaker::NumbersOf(const ColumnFacts& column, bool logarithm) const {
  NumberFacts facts;
  if (column.is_text() && column.unit.empty()) {
    facts = {column.shape.mean, column.shape.deviation, column.shape.min, column.shape.max};
  } else if (column.statistics.has_range) {
    facts = {column.statistics.mean, column.statistics.standard_deviation, column.statistics.min,
             column.statistics.max};
  }
  MendMoments(facts.min, facts.max, &facts.mean, &facts.deviation);
  const bool finite = std::isfinite(facts.mean) && std::isfinite(facts.deviation) &&
                      std::isfinite(facts.min) && std::isfinite(facts.max);
  if (logarithm || !finite ||
      !column.unit.empty()) {  // NaN and infinity count as NULL: use the sample's others
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
  MendMoments(facts.min, facts.max, &facts.mean, &facts.deviation);
  if (!(facts.deviation > 0)) {
    facts.deviation = 1;
  }
  return facts;
}

void FeatureMaker::Centre(const ColumnFacts& column, models::Feature* feature) const {
  std::vector<long double> numbers;
  bool whole = true;
  for (const std::vector<Value>& row : input_.statistics.sample) {
    const Value& cell = row[column.index];
    const auto* text = std::get_if<std::string>(&cell);
    if (const auto* integer = std::get_if<int64_t>(&cell)) {
      numbers.push_back(static_cast<long double>(*integer));
    } else if (const auto number = text ? models::ParseInteger(*text) : std::nullopt) {
      numbers.push_back(static_cast<long double>(*number));
    } else {
      whole = whole && (IsNull(cell) || (text && !models::ParseNumber(*text)));
    }
  }
  whole = whole && column.unit.empty() && column.thousands.empty();
  if (whole) {
    std::sort(numbers.begin(), numbers.end());
  } else {
    const std::vector<double> sampled = SampleNumbers(column);
    numbers.assign(sampled.begin(), sampled.end());
  }
  CentreFeature(FindCentre(numbers, whole), feature);
}

void CentreFeature(const std::optional<NumberCentre>& centre, models::Feature* feature) {
  if (centre) {
    feature->set_centred(true);
    feature->set_offset(centre->offset);
    feature->set_scale(centre->scale);
  }
}

void FillSpelling(const ColumnFacts& column, models::Feature* feature) {
  feature->set_unit(column.thousands == "," ? std::string(models::kThousandsUnit) : column.unit);
  feature->set_decimal_comma(column.thousands == ".");
}

void FeatureMaker::AllowOddCells(const ColumnFacts& column) {
  if (!column.is_text()) {
    return;
  }
  plan_.mutable_inputs(static_cast<int>(*inputs_[column.index]))->set_odd_is_missing(true);
  OddCells missing = column.odd;
  std::erase_if(missing.texts, [&column](const auto& text) {  // 0 is 0 in every unit
    return !column.unit.empty() && models::ParseNumber(text.first) == 0.0;
  });
  if (!missing.texts.empty()) {
    Assume(fmt::format("in {} these cells are missing values, unlike what all others hold: {}",
                       column.name(), ShownOdd(missing)));
  }
}

void FeatureMaker::AddFrequentOddCells(const ColumnFacts& column, const FeaturePart& part) {
  std::vector<std::string> words = FrequentOnes(column.odd);
  if (words.empty() || input_.one_scale) {
    return;
  }
  Feature* feature = Add(column.name() + "_word", {column.index}, part);
  FillVocabulary(std::move(words), feature->mutable_categorizer());
  Represent(feature, "sum");
}

void FeatureMaker::AddNumber(const ColumnFacts& column, const FeaturePart& part) {
  const NumberScale scale = trees() ? NumberScale::kPlain : ScaleOf(column);
  const auto add = [&](const std::string& name, bool logarithm) {
    Feature* feature = Add(name, {column.index}, part);
    feature->set_kind(Feature::NUMERIC);
    feature->set_scale(1);
    FillSpelling(column, feature);
    if (trees()) {
      Centre(column, feature);
      return;  // trees take the number itself, and NULL as missing
    }
    feature->set_logarithm(logarithm);
    const NumberFacts facts = NumbersOf(column, logarithm);
    feature->set_offset(facts.mean);
    feature->set_scale(1 / facts.deviation);
    // One indicator is enough for both.
    feature->set_null_indicator(column.has_null() && name == column.name());
  };
  if (column.thousands == ".") {
    Assume(
        fmt::format("{} holds numbers with a decimal comma: '1.234,5' is 1234.5", column.name()));
  }
  if (AreMerged(column.info, column.statistics)) {
    Assume(fmt::format("the numbers of {} are read with 53 bits, so neighbours become the same; {}",
                       column.name(), AllDigitsOf(column.name())));
  }
  add(column.name(), scale != NumberScale::kPlain);
  if (scale == NumberScale::kBoth) {
    add(column.name() + "_plain", false);
  }
  AllowOddCells(column);
  AddFrequentOddCells(column, part);
}

NumberScale FeatureMaker::ScaleOf(const ColumnFacts& column) const {
  // A smaller sample says nothing about a tail; an exponential distribution has a skewness of 2.
  // From there on the logarithm may be the better scale, and from 4 on it is.
  constexpr size_t kMinNumbers = 200;
  constexpr double kTail = 2;
  constexpr double kHeavy = 4;
  constexpr double kCured = 1;
  if (column.info.type == DataType::kBool || column.info.type == DataType::kTimestamp) {
    return NumberScale::kPlain;
  }
  const auto skewness = [](const std::vector<double>& numbers) {
    const auto count = static_cast<double>(numbers.size());
    double mean = 0;
    for (const double number : numbers) {
      mean += number / count;
    }
    double squares = 0, cubes = 0;
    for (const double number : numbers) {
      const double distance = number - mean;
      squares += distance * distance / count;
      cubes += distance * distance * distance / count;
    }
    return squares > 0 ? std::abs(cubes / std::pow(squares, 1.5)) : 0;
  };
  std::vector<double> numbers = SampleNumbers(column);
  const bool two_values = column.statistics.distinct <= 2;
  if (numbers.size() < kMinNumbers || two_values) {
    return NumberScale::kPlain;
  }
  const double as_it_is = skewness(numbers);
  for (double& number : numbers) {
    number = std::copysign(std::log1p(std::abs(number)), number);
  }
  const double as_logarithms = skewness(numbers);
  if (!std::isfinite(as_it_is) || as_it_is < kTail || !(as_logarithms < as_it_is / 2)) {
    return NumberScale::kPlain;
  }
  if (as_it_is >= kHeavy && as_logarithms < kCured) {
    return NumberScale::kLogarithm;
  }
  return input_.one_scale ? NumberScale::kPlain : NumberScale::kBoth;
}

// A straight line through months or grades says little, so a linear model with enough rows gets a
// weight for each value, too. Networks and trees find this out themselves.
bool FeatureMaker::HasFewValues(const ColumnFacts& column) const {
  constexpr double kMinValues = 3;
  constexpr double kMaxValues = 32;
  constexpr double kRowsPerValue = 50;
  const catalog::ColumnStatistics& statistics = column.statistics;
  return input_.family == models::ModelFamily::kLinear && statistics.all_values &&
         statistics.distinct >= kMinValues && statistics.distinct <= kMaxValues &&
         static_cast<double>(input_.statistics.rows) >= kRowsPerValue * statistics.distinct;
}

void FeatureMaker::AddValues(const ColumnFacts& column, const FeaturePart& part) {
  double covered = 0;
  Feature* feature = Add(column.name() + "_value", {column.index}, part);
  FillVocabulary(KnownValues(column, static_cast<size_t>(kMaxVocabulary), &covered),
                 feature->mutable_categorizer());
  Represent(feature, "sum");
}

bool FeatureMaker::IsCategoryOfNumbers(const ColumnFacts& column) const {
  constexpr double kMinValues = 3;  // two values are as good as a number
  constexpr double kMinRowsPerValue = 2;
  const catalog::ColumnStatistics& statistics = column.statistics;
  return !trees() && NamesACategory(column.name()) && statistics.has_range && statistics.min >= 0 &&
         statistics.distinct >= kMinValues &&
         static_cast<double>(input_.statistics.rows) >= kMinRowsPerValue * statistics.distinct;
}

// Texts of digits that name something: "01003", or a column that is called so.
bool FeatureMaker::IsCodeOfDigits(const ColumnFacts& column) const {
  constexpr double kMinRowsPerValue = 2;
  const catalog::ColumnStatistics& statistics = column.statistics;
  if (trees() || !column.thousands.empty() || statistics.distinct < 3 ||
      static_cast<double>(input_.statistics.rows) < kMinRowsPerValue * statistics.distinct) {
    return false;
  }
  bool padded = false;
  for (const std::string& cell : TextsOf(input_.statistics.sample, column.index)) {
    const std::string_view text = models::TrimBlanks(cell);
    if (!models::ParseNumber(text)) {
      continue;  // blank or odd
    }
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      return false;
    }
    padded = padded || (text.size() > 1 && text.front() == '0');
  }
  return padded || NamesACategory(column.name());
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
  // Small initial values: with a deviation of 1/sqrt(dimension), the census network's AUC is lower
  // by 0.0005 to 0.001 (three seeds each).
  feature->set_initializer("uniform");
}

void FeatureMaker::AddTextCategory(const ColumnFacts& column, const FeaturePart& part) {
  Feature* feature = Add(column.name(), {column.index}, part);
  double covered = 0;
  std::vector<std::string> values =
      KnownValues(column, static_cast<size_t>(kMaxVocabulary), &covered);
  const double distinct = column.statistics.distinct;
  const bool known = column.statistics.all_values || covered >= kMinCovered;
  if (distinct <= kMaxVocabulary && known) {
    FillVocabularyOf(column, std::move(values), feature->mutable_categorizer());
  } else {
    FillHash(HashBucketsOf(column.statistics), feature->mutable_categorizer());
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

void FeatureMaker::AddShapedText(const ColumnFacts& column, const FeaturePart& part) {
  const models::ColumnFormat& format = column.shape.format;
  Feature* feature = Add(column.name(), {column.index}, part);
  models::TensorFormat* cells = feature->mutable_format();
  cells->set_kind(format.kind == ColumnFormatKind::kKeyValue ? models::TensorFormat::KEY_VALUE
                                                             : models::TensorFormat::CSV);
  cells->set_delimiter(format.delimiter);
  cells->set_key_value_delimiter(format.key_value_delimiter);
  cells->set_sparse(format.kind != ColumnFormatKind::kDenseCsv);
  AllowOddCells(column);
  const int64_t width = format.kind == ColumnFormatKind::kDenseCsv
                            ? format.width
                            : std::min(format.max_index + 1, kMaxTensorIds);
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
  if (format.max_index < kMaxTensorIds) {
    FillIdentity(static_cast<uint32_t>(width), feature->mutable_categorizer());
  } else {
    FillHash(HashBuckets(static_cast<double>(kMaxTensorIds)), feature->mutable_categorizer());
  }
  WithoutNullBucket(feature->mutable_categorizer());
  Represent(feature, feature->weighted() ? "sum" : "mean");
}

Status FeatureMaker::AddDerived(const ColumnFacts& column, const FeaturePart& part, Span span) {
  if (column.time) {
    AddTimestamp(column, part);
    return OkStatus();
  }
  switch (column.info.type) {
    case DataType::kInt64:
      if (IsCategoryOfNumbers(column)) {
        Feature* feature = Add(column.name(), {column.index}, part);
        ColumnSpec name;
        RETURN_IF_ERROR(FillPlainCategory(name, column, feature));
        Represent(feature, "sum");
        return OkStatus();
      }
      AddNumber(column, part);
      if (HasFewValues(column)) {
        AddValues(column, part);
      }
      return OkStatus();
    case DataType::kBool:
    case DataType::kDouble:
      AddNumber(column, part);
      return OkStatus();
    case DataType::kTimestamp:
      break;  // one of the times above
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
      IsCodeOfDigits(column) ? AddTextCategory(column, part) : AddNumber(column, part);
      break;
    case ColumnFormatKind::kTimestamp:
      break;
    case ColumnFormatKind::kDenseCsv:
    case ColumnFormatKind::kSparseCsv:
    case ColumnFormatKind::kKeyValue:
      AddShapedText(column, part);
      break;
    case ColumnFormatKind::kText:
      if (!column.unit.empty()) {
        AddNumber(column, part);
        break;
      }
      if (!AddNameLists(column, part)) {
        IsFreeText(column) ? AddWords(column, part) : AddTextCategory(column, part);
      }
      break;
  }
  return OkStatus();
}

}  // namespace sluice::planner
