#include "planner/decision.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/letter_case.h"
#include "base/sql_name.h"
#include "models/features/cell_format.h"
#include "models/model.pb.h"
#include "planner/metric_list.h"

namespace sluice::planner {
namespace {

constexpr char kThreshold[] = "predict.threshold";
constexpr char kClassWeight[] = "class_weight";
// A larger weight would drown all other classes.
constexpr double kMaxWeight = 1e6;

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
  const std::string word = LowerAscii(*text);
  if (word == "f1" || word == "auto") {
    return word;
  }
  if (word.starts_with("cost:")) {
    const std::optional<double> cost = models::ParseNumber(word.substr(5));
    if (cost && *cost > 0 && *cost <= kMaxWeight) {
      return fmt::format("cost:{}", FormatDouble(*cost));
    }
    return InvalidArgument(fmt::format("{}: a cost is a number above 0 and up to {:.0f}, not '{}'",
                                       kThreshold, kMaxWeight, word.substr(5)))
        .At(span)
        .Hint(fmt::format("'cost:5': missing a '{}' costs five times as much as a false one",
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
      .Hint(fmt::format("a row is '{}' if its probability is at least that", label.classes(1)));
}

Status ReadCalibration(const AttributeSet& attributes, models::ModelSpec* model) {
  constexpr char kCalibrate[] = "train.calibrate";
  const std::optional<std::string> method =
      attributes.Declared(kCalibrate) ? attributes.Text(kCalibrate) : std::nullopt;
  if (!method) {
    return OkStatus();
  }
  const models::LabelPlan& label = model->features().label();
  if (label.kind() != models::LabelPlan::CLASS) {
    return InvalidArgument(fmt::format("{} is of the probabilities of classes, and label '{}' is a "
                                       "number",
                                       kCalibrate, label.column()))
        .At(attributes.SpanOf(kCalibrate))
        .Hint("leave it out");
  }
  model->mutable_calibration()->set_method(*method);
  return OkStatus();
}

namespace {

// 'yes: 5, no: 1', the weights in quotes.
Result<std::vector<NamedNumber>> SplitWeights(const std::string& text, Span span,
                                              const models::LabelPlan& label) {
  std::vector<NamedNumber> named;
  for (const std::string& pair : SplitList(text)) {
    const size_t colon = pair.rfind(':');
    const std::optional<double> weight =
        colon == std::string::npos ? std::nullopt : models::ParseNumber(pair.substr(colon + 1));
    if (!weight) {
      return InvalidArgument(
                 fmt::format("{}: '{}' is no class with its weight", kClassWeight, pair))
          .At(span)
          .Hint(fmt::format("'balanced', or weights above 0: {{'{}': 5, '{}': 1}}",
                            *label.classes().rbegin(), *label.classes().begin()));
    }
    named.push_back({std::string(models::TrimBlanks(pair.substr(0, colon))), *weight, span, span});
  }
  return named;
}

// The class that the user names; a boolean's class may be written as a boolean.
std::optional<int> FindClass(const models::LabelPlan& label, const std::string& name) {
  const std::string flag = name == "true" ? "t" : name == "false" ? "f" : name;
  for (int i = 0; i < label.classes_size(); ++i) {
    if (label.classes(i) == name || label.classes(i) == flag) {
      return i;
    }
  }
  return std::nullopt;
}

Status SetWeights(const std::vector<NamedNumber>& named, const models::LabelPlan& label,
                  std::vector<double>* weights) {
  Status errors;
  std::set<int> given;
  weights->assign(static_cast<size_t>(label.classes_size()), 1);
  const std::vector<std::string> known(label.classes().begin(), label.classes().end());
  for (const NamedNumber& one : named) {
    const std::optional<int> found = FindClass(label, one.name);
    if (!found) {
      const auto nearest = NearestName(one.name, known);
      errors.Add(InvalidArgument(fmt::format("{}: label '{}' has no class '{}'", kClassWeight,
                                             label.column(), one.name))
                     .At(one.name_span)
                     .Hint(nearest
                               ? fmt::format("did you mean '{}'?", *nearest)
                               : fmt::format("its classes are {}",
                                             fmt::join(known.begin(),
                                                       known.begin() +
                                                           std::min<int64_t>(10, std::ssize(known)),
                                                       ", "))));
    } else if (!given.insert(*found).second) {
      errors.Add(InvalidArgument(fmt::format("{}: '{}' has two weights", kClassWeight, one.name))
                     .At(one.name_span));
    } else if (!(one.number > 0) || one.number > kMaxWeight) {
      errors.Add(
          InvalidArgument(fmt::format("{}: the weight of '{}' is above 0 and up to {:.0f}, "
                                      "not {}",
                                      kClassWeight, one.name, kMaxWeight, FormatDouble(one.number)))
              .At(one.number_span)
              .Hint("a class that is not named weighs 1"));
    } else {
      (*weights)[static_cast<size_t>(*found)] = one.number;
    }
  }
  return errors;
}

}  // namespace

Status FillClassWeights(const AttributeSet& attributes, const catalog::ColumnStatistics& statistics,
                        int64_t rows, models::LabelPlan* label) {
  if (!attributes.Declared(kClassWeight) || !attributes.Given(kClassWeight)) {
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
  const std::string text = attributes.Text(kClassWeight).value_or("");
  if (LowerAscii(text) == "balanced") {
    const double least = 1.0 / static_cast<double>(std::max<int64_t>(rows, 1));
    for (const std::string& name : label->classes()) {
      weights.push_back(1 / (label->classes_size() * std::max(ShareOf(name, statistics), least)));
    }
  } else {
    std::optional<std::vector<NamedNumber>> named = attributes.NamedNumbers(kClassWeight);
    if (!named) {
      ASSIGN_OR_RETURN(named, SplitWeights(text, span, *label));
    }
    RETURN_IF_ERROR(SetWeights(*named, *label, &weights));
  }
  label->mutable_class_weights()->Assign(weights.begin(), weights.end());
  return OkStatus();
}

std::string WarnOfFewRows(const models::LabelPlan& label, int64_t rows) {
  constexpr int kManyClasses = 20;
  constexpr double kFewRows = 10;
  const double each = static_cast<double>(rows) / std::max(1, label.classes_size());
  if (label.classes_size() < kManyClasses || each >= kFewRows) {
    return "";
  }
  return fmt::format(
      "{} has {} classes in {} rows, about {:.2g} of each: hardly any of them can be "
      "learnt; group them in the SELECT",
      label.column(), label.classes_size(), rows, each);
}

std::string WarnOfSpellings(const models::LabelPlan& label) {
  constexpr size_t kMostShown = 6;
  std::map<std::string, std::vector<std::string>> spellings;
  for (const std::string& name : label.classes()) {
    const std::string_view word = models::TrimBlanks(name);
    // Of single letters the case may be what they differ in.
    spellings[word.size() > 1 ? LowerAscii(word) : std::string(word)].push_back(name);
  }
  std::vector<std::string> shown;
  for (const auto& [word, names] : spellings) {
    for (size_t i = 0; names.size() > 1 && i < names.size() && shown.size() < kMostShown; ++i) {
      shown.push_back(models::QuotedCell(names[i]));
    }
  }
  if (shown.empty()) {
    return "";
  }
  return fmt::format(
      "classes of {0} that differ only in case or in blanks are classes of their own: {1}; select "
      "lower(trim({2})) AS {2} if they are meant to be the same",
      label.column(), fmt::join(shown, ", "), SqlName(label.column()));
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
