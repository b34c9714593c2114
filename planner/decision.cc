#include "planner/decision.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "models/features/cell_format.h"
#include "models/model.pb.h"
#include "planner/letter_case.h"
#include "planner/metric_list.h"

namespace sluice::planner {
namespace {

constexpr char kThreshold[] = "predict.threshold";
constexpr char kClassWeight[] = "class_weight";
// A class that is weighed more than this drowns all others.
constexpr double kMostWeight = 1e6;

double ShareOf(const std::string& name, const catalog::ColumnStatistics& statistics) {
  for (const auto& [value, share] : statistics.common_values) {
    if (value == name) {
      return share;
    }
  }
  return 0;
}

}  // namespace

Result<std::string> ReadThreshold(const AttributeSet& attributes, const models::LabelPlan& label) {
  const std::optional<std::string> text =
      attributes.Declared(kThreshold) ? attributes.Text(kThreshold) : std::nullopt;
  if (!text) {
    return std::string();
  }
  const Span span = attributes.SpanOf(kThreshold);
  if (label.kind() != models::LabelPlan::CLASS || label.classes_size() != 2) {
    return InvalidArgument(
               label.kind() == models::LabelPlan::CLASS
                   ? fmt::format("{} decides between two classes, and label '{}' has {}",
                                 kThreshold, label.column(), label.classes_size())
                   : fmt::format("{} decides between two classes, and label '{}' is a number",
                                 kThreshold, label.column()))
        .At(span)
        .Hint("leave it out");
  }
  const std::string word = LowerCase(*text);
  if (word == "f1" || word == "auto") {
    return word;
  }
  if (word.starts_with("cost:")) {
    const std::optional<double> cost = models::ParseNumber(word.substr(5));
    if (cost && *cost > 0 && *cost <= kMostWeight) {
      return fmt::format("cost:{}", FormatDouble(*cost));
    }
    return InvalidArgument(fmt::format("{}: a cost is a number above 0 and up to {:.0f}, not '{}'",
                                       kThreshold, kMostWeight, word.substr(5)))
        .At(span)
        .Hint(fmt::format("'cost:5': to miss '{}' costs five times as much as to name it in vain",
                          label.classes(1)));
  }
  const std::optional<double> number = models::ParseNumber(word);
  if (number && *number > 0 && *number < 1) {
    return FormatDouble(*number);
  }
  return InvalidArgument(number ? fmt::format("{} must lie between 0 and 1, not {}", kThreshold,
                                              FormatDouble(*number))
                                : fmt::format("{} must be a number, 'f1', 'cost:5' or 'auto', not "
                                              "'{}'",
                                              kThreshold, *text))
      .At(span)
      .Hint(
          fmt::format("a row is '{}' where its probability is at least so much", label.classes(1)));
}

Status FillClassWeights(const AttributeSet& attributes, const catalog::ColumnStatistics& statistics,
                        int64_t rows, models::LabelPlan* label) {
  const std::optional<std::string> text =
      attributes.Declared(kClassWeight) ? attributes.Text(kClassWeight) : std::nullopt;
  if (!text) {
    return OkStatus();
  }
  const Span span = attributes.SpanOf(kClassWeight);
  if (label->kind() != models::LabelPlan::CLASS) {
    return InvalidArgument(fmt::format("{} weighs classes, and label '{}' is a number",
                                       kClassWeight, label->column()))
        .At(span)
        .Hint("leave it out; a weight of each row is a weight column");
  }
  std::vector<double> weights;
  if (LowerCase(*text) == "balanced") {
    const double least = 1.0 / static_cast<double>(std::max<int64_t>(rows, 1));
    for (const std::string& name : label->classes()) {
      weights.push_back(1 / (label->classes_size() * std::max(ShareOf(name, statistics), least)));
    }
  } else {
    std::map<std::string, double> given;
    const std::vector<std::string> known(label->classes().begin(), label->classes().end());
    for (const std::string& pair : SplitList(*text)) {
      const size_t colon = pair.rfind(':');
      const std::string name(models::TrimBlanks(pair.substr(0, colon)));
      const std::optional<double> weight =
          colon == std::string::npos ? std::nullopt : models::ParseNumber(pair.substr(colon + 1));
      if (!weight || !(*weight > 0) || *weight > kMostWeight) {
        return InvalidArgument(
                   fmt::format("{}: '{}' is no class with its weight", kClassWeight, pair))
            .At(span)
            .Hint(fmt::format("'balanced', or weights above 0: '{}: 5, {}: 1'", known.back(),
                              known.front()));
      }
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const auto nearest = NearestName(name, known);
        return InvalidArgument(fmt::format("{}: label '{}' has no class '{}'", kClassWeight,
                                           label->column(), name))
            .At(span)
            .Hint(nearest ? fmt::format("did you mean '{}'?", *nearest)
                          : fmt::format("its classes are {}", fmt::join(known, ", ")));
      }
      given[name] = *weight;
    }
    for (const std::string& name : known) {
      const auto found = given.find(name);
      weights.push_back(found == given.end() ? 1 : found->second);
    }
  }
  label->mutable_class_weights()->Assign(weights.begin(), weights.end());
  return OkStatus();
}

std::string DescribeBaseline(const models::LabelPlan& label,
                             const catalog::ColumnStatistics& statistics) {
  if (label.kind() == models::LabelPlan::CLASS && !statistics.common_values.empty()) {
    const auto& [name, share] = statistics.common_values.front();
    const double known = std::max(1e-12, 1 - statistics.null_fraction);
    return fmt::format("always '{}': accuracy {:.4g}", name, share / known);
  }
  if (label.kind() == models::LabelPlan::NUMBER && statistics.has_range) {
    return fmt::format("always the mean, {:.6g}: rmse {:.6g}, r2 0", statistics.mean,
                       statistics.standard_deviation);
  }
  return "";
}

}  // namespace sluice::planner
