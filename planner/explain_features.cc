#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/utf8.h"
#include "base/value.h"
#include "models/features/cell_format.h"
#include "models/features/time_cell.h"
#include "planner/explain_internal.h"
#include "planner/grouped_number.h"

namespace sluice::planner {
namespace {

using models::Categorizer;
using models::Feature;

constexpr int kShownValues = 5;
constexpr size_t kShownBytes = 40;  // limit per value: a class may be a whole document

std::string Shorten(const std::string& value) {
  if (value.size() <= kShownBytes) {
    return value.empty() ? "''" : value;
  }
  return std::string(CutToBytes(value, kShownBytes)) + "...";
}

std::string DescribeMeasure(const std::string& measure) {
  if (measure == "days") {
    return "days since 1970";
  }
  if (measure == "day_of_year") {
    return "day of the year";
  }
  if (measure.ends_with("_sin") || measure.ends_with("_cos")) {
    return fmt::format("place in the {}, on a circle ({})", measure.substr(0, measure.size() - 4),
                       measure.ends_with("_sin") ? "sine" : "cosine");
  }
  return measure;
}

std::string DescribeNumeric(const Feature& feature) {
  std::string how =
      feature.kind() == Feature::TENSOR
          ? fmt::format(
                "tensor of {} numbers from {}", feature.width(),
                feature.format().kind() == models::TensorFormat::KEY_VALUE ? "key:value" : "CSV")
      : feature.time_part().empty() ? "numeric"
                                    : DescribeMeasure(feature.time_part());
  if (feature.unit() == models::kThousandsUnit || feature.decimal_comma()) {
    how += fmt::format(", written as {}", feature.decimal_comma() ? "1.234,5" : "1,234.5");
  } else if (!feature.unit().empty()) {
    how += fmt::format(", as '{}'", feature.unit());
  }
  if (feature.logarithm()) {
    how += ", logarithm";
  }
  if (feature.centred()) {
    how += fmt::format(", x - {}", FormatDouble(feature.offset()));
    how += feature.scale() == 1 ? "" : fmt::format(", times {}", FormatDouble(feature.scale()));
  } else if (feature.offset() != 0 || feature.scale() != 1) {
    how += fmt::format(", (x - {:.6g}) / {:.6g}", feature.offset(), 1 / feature.scale());
  }
  return feature.null_indicator() ? how + ", NULL indicator" : how;
}

std::string DescribeCategorizer(const Categorizer& categorizer) {
  switch (categorizer.kind()) {
    case Categorizer::VOCABULARY:
      return DescribeValues(categorizer.vocabulary(), "values") +
             (categorizer.any_case() ? ", in any case" : "");
    case Categorizer::IDENTITY:
      return fmt::format("{} ids", GroupDigits(categorizer.buckets()));
    case Categorizer::HASH:
      return fmt::format("hashed into {} buckets", GroupDigits(categorizer.buckets()));
    case Categorizer::BUCKET: {
      const int count = categorizer.boundaries_size();
      std::vector<std::string> shown;
      shown.reserve(kShownValues);
      for (int i = 0; i < std::min(count, kShownValues); ++i) {
        shown.push_back(fmt::format("{:.6g}", categorizer.boundaries(i)));
      }
      return fmt::format("{} buckets cut at {}{}", count + 1, fmt::join(shown, ", "),
                         count > kShownValues ? ", ..." : "");
    }
    case Categorizer::CROSS:
      return fmt::format("crossed into {} buckets", GroupDigits(categorizer.buckets()));
    case Categorizer::TIME_PART:
      return fmt::format("{} of the time", categorizer.time_part());
    default:
      return "category";
  }
}

std::string DescribeWords(const Feature& feature) {
  const uint32_t run = feature.words().longest_run();
  return fmt::format("words{} hashed into {} buckets, weighted (TF-IDF)",
                     run > 1 ? fmt::format(" and runs of up to {}", run) : "",
                     GroupDigits(feature.categorizer().buckets()));
}

std::string DescribeCategory(const Feature& feature) {
  const bool words = feature.format().kind() == models::TensorFormat::TEXT;
  std::string how = words ? DescribeWords(feature) : DescribeCategorizer(feature.categorizer());
  if (!words && feature.format().kind() != models::TensorFormat::NONE) {
    how += feature.weighted() ? ", several per row with weights" : ", several per row";
  }
  if (feature.representation() == Feature::EMBEDDING) {
    return how + fmt::format("; embedding {}", feature.dimension());
  }
  return how + "; indicator";
}

std::string PartName(const Feature& feature) {
  if (!feature.tower().empty()) {
    return feature.tower() + ": ";
  }
  return feature.part() == Feature::WIDE   ? "wide part: "
         : feature.part() == Feature::DEEP ? "deep part: "
                                           : "";
}

}  // namespace

std::string DescribeValues(const google::protobuf::RepeatedPtrField<std::string>& values,
                           std::string_view noun) {
  std::vector<std::string> shown;
  for (int i = 0; i < std::min(values.size(), kShownValues); ++i) {
    shown.push_back(Shorten(values[i]));
  }
  const int rest = values.size() - static_cast<int>(shown.size());
  return fmt::format("{} {}: {}{}", GroupDigits(values.size()), noun, fmt::join(shown, ", "),
                     rest > 0 ? fmt::format(", ... {} more", GroupDigits(rest)) : "");
}

FeatureLine DescribeFeature(const Feature& feature, const models::FeaturePlan& plan) {
  FeatureLine line;
  line.name = feature.name();
  std::vector<std::string> inputs;
  for (const uint32_t input : feature.inputs()) {
    const models::InputColumn& column = plan.inputs(static_cast<int>(input));
    const std::string_view type = DataTypeName(static_cast<DataType>(column.type()));
    inputs.push_back(column.name() == feature.name() ? std::string(type)
                                                     : fmt::format("{} {}", column.name(), type));
  }
  line.reads = fmt::format("{}", fmt::join(inputs, ", "));
  line.how = fmt::format(
      "{}{}", PartName(feature),
      feature.kind() == Feature::CATEGORY ? DescribeCategory(feature) : DescribeNumeric(feature));
  const auto format =
      feature.inputs_size() == 1
          ? models::FindTimeFormat(plan.inputs(static_cast<int>(feature.inputs(0))).time_format())
          : std::nullopt;
  constexpr std::string_view kDays = "days since 1970";
  if (format && *format == models::TimeFormat::kClock && line.how.starts_with(kDays)) {
    line.how.replace(0, kDays.size(), "time of day, in days");
  }
  if (format && *format != models::TimeFormat::kIso && feature.time_part() == "days") {
    line.how += fmt::format(", written as {}", models::TimeFormatExample(*format));
  }
  return line;
}

}  // namespace sluice::planner
