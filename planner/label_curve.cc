#include "planner/label_curve_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/features/cell_format.h"
#include "models/features/label_scale.h"

namespace sluice::planner {
namespace {

constexpr char kLabelScale[] = "train.label_scale";
// The skewness of an exponential distribution is 2, of a symmetric one 0.
constexpr double kHeavySkewness = 1.0;
constexpr size_t kMinSampled = 50;
constexpr size_t kMinDistinct = 20;

struct Moments {
  double mean = 0, deviation = 0, skewness = 0;
};

Moments MomentsOf(const std::vector<double>& numbers) {
  Moments moments;
  const auto count = static_cast<double>(numbers.size());
  moments.mean = std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
  double squares = 0, cubes = 0;
  for (const double number : numbers) {
    const double off = number - moments.mean;
    squares += off * off;
    cubes += off * off * off;
  }
  moments.deviation = std::sqrt(squares / count);
  moments.skewness = moments.deviation > 0 ? cubes / count / std::pow(moments.deviation, 3) : 0;
  return moments;
}

bool HasNegative(const std::vector<double>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](double number) { return number < 0; });
}

std::vector<double> OnCurve(models::LabelPlan::Curve curve, std::vector<double> numbers) {
  if (curve != models::LabelPlan::STRAIGHT) {
    const models::LabelCurve bend = curve == models::LabelPlan::ROOT
                                        ? models::LabelCurve::kRoot
                                        : models::LabelCurve::kLogarithm;
    std::transform(numbers.begin(), numbers.end(), numbers.begin(),
                   [bend](double number) { return models::Bend(bend, number); });
  }
  return numbers;
}

// What is learnt is centred and scaled on the curve if it was before.
void PutOnCurve(models::LabelPlan::Curve curve, const std::vector<double>& sample,
                models::LabelPlan* label) {
  const bool centred = label->mean() != 0 || label->scale() != 1;
  const bool scaled = label->scale() != 1;
  label->set_curve(curve);
  label->set_never_negative(scaled && !HasNegative(sample));
  label->set_mean(0);
  label->set_scale(1);
  if (!centred || sample.empty()) {
    return;
  }
  const Moments moments = MomentsOf(OnCurve(curve, sample));
  label->set_mean(moments.mean);
  label->set_scale(scaled && moments.deviation > 0 ? moments.deviation : 1);
}

}  // namespace

std::vector<double> LabelSample(const std::vector<std::vector<Value>>& sample, size_t column) {
  std::vector<double> numbers;
  for (const std::vector<Value>& row : sample) {
    std::optional<double> number;
    if (const auto* integer = std::get_if<int64_t>(&row[column])) {
      number = static_cast<double>(*integer);
    } else if (const auto* real = std::get_if<double>(&row[column])) {
      number = *real;
    } else if (const auto* text = std::get_if<std::string>(&row[column])) {
      number = models::ParseNumber(*text);
    }
    if (number && std::isfinite(*number)) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

Status BindLabelCurve(const AttributeSet& attributes, const std::vector<double>& sample,
                      models::LabelPlan* label) {
  const std::optional<std::string> asked =
      attributes.Declared(kLabelScale) ? attributes.Text(kLabelScale) : std::nullopt;
  if (!asked) {
    return OkStatus();
  }
  if (label->kind() != models::LabelPlan::NUMBER) {
    return InvalidArgument(fmt::format("{} is of a label that is one number, and label '{}' {}",
                                       kLabelScale, label->column(),
                                       label->kind() == models::LabelPlan::CLASS ? "is a class"
                                                                                 : "holds several"))
        .At(attributes.SpanOf(kLabelScale))
        .Hint("leave it out");
  }
  if (*asked == "root") {
    PutOnCurve(models::LabelPlan::ROOT, sample, label);
  } else if (*asked == "log") {
    PutOnCurve(models::LabelPlan::LOGARITHM, sample, label);
  }
  return OkStatus();
}

Status CheckLearntScale(const models::LabelPlan& learnt, const std::vector<double>& sample,
                        Span span) {
  if (learnt.kind() == models::LabelPlan::NUMBER && learnt.never_negative() &&
      HasNegative(sample)) {
    return InvalidArgument(
               fmt::format("label '{}' has numbers below 0, and the model to continue "
                           "from has learnt the {} of numbers that are not",
                           learnt.column(),
                           learnt.curve() == models::LabelPlan::ROOT ? "root" : "logarithm"))
        .At(span)
        .Hint("train a new model: leave USING out");
  }
  return OkStatus();
}

std::string OtherLevel(const models::LabelPlan& learnt, const std::vector<double>& sample) {
  // So far away, a model needs more steps than a training has, and weights that are not finer.
  constexpr double kDeviations = 10;
  const bool scaled = learnt.kind() == models::LabelPlan::NUMBER && learnt.scale() != 1;
  if (!scaled || sample.size() < kMinSampled) {
    return "";
  }
  const Moments moments = MomentsOf(OnCurve(learnt.curve(), sample));
  const bool far = std::fabs(moments.mean - learnt.mean()) > kDeviations * learnt.scale();
  const bool other_unit =
      moments.deviation > 0 && (moments.deviation > kDeviations * learnt.scale() ||
                                moments.deviation < learnt.scale() / kDeviations);
  return far || other_unit
             ? fmt::format(
                   "{} is {:.6g} on average, deviating by {:.6g}, and the model to "
                   "continue from has learnt it around {:.6g}, deviating by {:.6g}: it will "
                   "hardly reach the new level; train a new model, without USING",
                   learnt.column(), moments.mean, moments.deviation, learnt.mean(), learnt.scale())
             : "";
}

std::vector<models::LabelPlan> OtherScales(const std::vector<double>& sample,
                                           const models::LabelPlan& label) {
  if (label.kind() != models::LabelPlan::NUMBER || label.curve() != models::LabelPlan::STRAIGHT ||
      sample.size() < kMinSampled || HasNegative(sample) ||
      MomentsOf(sample).skewness < kHeavySkewness) {
    return {};
  }
  std::vector<double> values = sample;
  std::sort(values.begin(), values.end());
  const auto distinct = std::unique(values.begin(), values.end()) - values.begin();
  if (static_cast<size_t>(distinct) < kMinDistinct) {
    return {};
  }
  std::vector<models::LabelPlan> scales(2, label);
  PutOnCurve(models::LabelPlan::ROOT, sample, &scales[0]);
  PutOnCurve(models::LabelPlan::LOGARITHM, sample, &scales[1]);
  return scales;
}

}  // namespace sluice::planner
