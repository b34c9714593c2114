#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "models/features/cell_format.h"
#include "models/features/feature_transform.h"
#include "parser/printer.h"
#include "planner/error_list.h"
#include "planner/plan_contest_internal.h"

namespace sluice::planner {
namespace {

using models::AttributeSpec;
using models::AttributeType;

// If a range's ends differ by this factor, it is searched logarithmically.
constexpr double kLogarithmicRange = 10;

// One attribute's values: a range, or a list.
struct Choices {
  const AttributeSpec* spec = nullptr;
  bool range = false;
  double low = 0, high = 0;
  std::vector<parser::AttributeValue> values;
};

std::optional<double> NumberIn(const parser::AttributeValue& value) {
  if (const auto* integer = std::get_if<int64_t>(&value.value)) {
    return static_cast<double>(*integer);
  }
  const auto* number = std::get_if<double>(&value.value);
  return number != nullptr && std::isfinite(*number) ? std::optional(*number) : std::nullopt;
}

Status CheckEnd(const TunedAttribute& tuned, const AttributeSpec& spec, double end) {
  if ((spec.min && end < *spec.min) || (spec.max && end > *spec.max)) {
    const std::string allowed = spec.min && spec.max
                                    ? fmt::format("between {:.6g} and {:.6g}", *spec.min, *spec.max)
                                : spec.min ? fmt::format("at least {:.6g}", *spec.min)
                                           : fmt::format("at most {:.6g}", *spec.max);
    return InvalidArgument(
               fmt::format("tune.{} goes to {:.6g}; {} is {}", tuned.name, end, spec.name, allowed))
        .At(tuned.value_span);
  }
  return OkStatus();
}

Result<Choices> ChoicesOf(const TunedAttribute& tuned, const BoundTrain& bound) {
  const models::ModelType& type = *bound.type;
  Choices choices;
  choices.spec = models::FindAttribute(type, tuned.name);
  if (choices.spec == nullptr || choices.spec->without_effect) {
    const std::string hint = models::UnknownAttributeHint(type, tuned.name);
    return InvalidArgument(fmt::format("tune.{}: {} has no attribute {} to search", tuned.name,
                                       type.name, tuned.name))
        .At(tuned.span)
        .Hint(hint.empty() ? fmt::format("DESCRIBE MODEL TYPE {} lists them", type.name) : hint);
  }
  for (const char* prefix : {"engine.", "split.", "validation.", "features.", "predict."}) {
    if (choices.spec->name.starts_with(prefix)) {
      return InvalidArgument(
                 fmt::format("tune.{}: {} says nothing of the model, and is not searched",
                             tuned.name, choices.spec->name))
          .At(tuned.span);
    }
  }
  if (bound.attributes.Given(choices.spec->name)) {
    return InvalidArgument(
               fmt::format("{} is given, and tune.{} searches it", choices.spec->name, tuned.name))
        .At(tuned.span)
        .Hint("leave one of them out");
  }
  const bool number =
      choices.spec->type == AttributeType::kInteger || choices.spec->type == AttributeType::kNumber;
  choices.values = tuned.values;
  choices.range = number && tuned.values.size() == 2;
  if (!choices.range) {
    return choices;
  }
  const auto low = NumberIn(tuned.values[0]);
  const auto high = NumberIn(tuned.values[1]);
  if (!low || !high) {
    return InvalidArgument(fmt::format("tune.{} must be a range of numbers", tuned.name))
        .At(tuned.value_span)
        .Hint(fmt::format("write tune.{} = [low, high]", tuned.name));
  }
  if (*low > *high) {
    return InvalidArgument(fmt::format("the range of tune.{} is reversed: {:.6g} is above {:.6g}",
                                       tuned.name, *low, *high))
        .At(tuned.value_span)
        .Hint(fmt::format("write tune.{} = [{:.6g}, {:.6g}]", tuned.name, *high, *low));
  }
  RETURN_IF_ERROR(CheckEnd(tuned, *choices.spec, *low));
  RETURN_IF_ERROR(CheckEnd(tuned, *choices.spec, *high));
  choices.low = *low;
  choices.high = *high;
  return choices;
}

// In [0, 1), determined by the seed, the trial and the attribute.
double Draw(uint64_t seed, int64_t trial, const std::string& name) {
  constexpr int kBits = 53;
  const uint64_t hash = models::HashInteger(models::HashInteger(seed ^ models::HashText(name)) +
                                            static_cast<uint64_t>(trial));
  return std::ldexp(static_cast<double>(hash >> (64U - kBits)), -kBits);
}

parser::AttributeValue ValueOf(const Choices& choices, double draw) {
  if (!choices.range) {
    return choices.values[static_cast<size_t>(draw * static_cast<double>(choices.values.size()))];
  }
  const bool logarithmic = choices.low > 0 && choices.high / choices.low >= kLogarithmicRange;
  if (choices.spec->type == AttributeType::kInteger) {
    const double low = std::ceil(choices.low);
    const double high = std::floor(choices.high) + 1;
    const double value = logarithmic ? low * std::pow(high / low, draw) : low + (high - low) * draw;
    return {static_cast<int64_t>(std::min(std::floor(value), high - 1)), {}};
  }
  const double value = logarithmic ? choices.low * std::pow(choices.high / choices.low, draw)
                                   : choices.low + (choices.high - choices.low) * draw;
  // Round to three digits, as a person would write.
  const double written = models::ParseNumber(fmt::format("{:.3g}", value)).value_or(value);
  return {std::clamp(written, choices.low, choices.high), {}};
}

}  // namespace

Status FillSearch(const ContestSetup& ground, plan::TrainPlan* plan) {
  const BoundTrain& bound = ground.bound;
  const ContestRequest& request = ground.request;
  if (ground.request.automatic_span.valid()) {
    return InvalidArgument("auto.* and tune.* exclude each other")
        .At(request.automatic_span)
        .Hint("auto.* tries several types, tune.* settings of one");
  }
  if (!request.training.model_type) {
    return InvalidArgument("tune.* searches the attributes of a model type, and none is named")
        .At(request.search_span)
        .Hint(
            "TO TRAIN xgboost.gbtree WITH tune.eta=[0.01, 0.3]; without tune.* several types are "
            "tried");
  }
  if (bound.base) {
    return Unimplemented("a training that continues from a model has its settings from there")
        .At(request.search_span)
        .Hint("leave USING or tune.* out");
  }
  if (plan->has_checkpoints()) {
    return Unimplemented("a search keeps no checkpoints: its trainings that are over are recorded")
        .At(request.search_span)
        .Hint("leave engine.checkpoint_dir out");
  }
  ErrorList errors;
  std::vector<Choices> all;
  for (const TunedAttribute& tuned : request.tuned) {
    Result<Choices> choices = ChoicesOf(tuned, bound);
    errors.Add(choices.status());
    if (choices.ok()) {
      all.push_back(std::move(choices).value());
    }
  }
  plan::Contest contest;
  contest.set_search(true);
  errors.Add(FillContestMetric(request.search, "tune.metric", *plan, &contest));
  if (!FillContestRows(bound, *plan, &contest)) {
    errors.Add(InvalidArgument("a search judges by validation rows, and there are none")
                   .At(request.search_span)
                   .Hint("split.fraction=0.2 sets some aside"));
  }
  if (!errors.empty()) {
    return errors.Take();
  }
  contest.set_seconds(request.search.Number("tune.seconds").value_or(0));
  contest.set_halves(request.search.Text("tune.search").value_or("") == "halving");
  const int64_t trials = request.search.Integer("tune.trials").value_or(1);
  std::set<std::string> seen;
  Status refused;
  constexpr int64_t kDrawsPerTrial = 20;
  for (int64_t draw = 0; draw < trials * kDrawsPerTrial && contest.candidates_size() < trials;
       ++draw) {
    std::vector<parser::Attribute> settings;
    std::string key;
    for (size_t i = 0; draw > 0 && i < all.size(); ++i) {  // the first trial draws nothing
      parser::Attribute setting;
      setting.name.text = all[i].spec->name;
      setting.name.parts = {all[i].spec->name};
      setting.value = ValueOf(all[i], Draw(plan->seed(), draw, all[i].spec->name));
      setting.value.span = request.tuned[i].value_span;
      setting.name.span = request.tuned[i].span;
      key += setting.name.text + "=" + parser::Print(setting.value) + " ";
      settings.push_back(std::move(setting));
    }
    if (!seen.insert(key).second) {
      continue;
    }
    Result<plan::Candidate> candidate =
        MakeCandidate(ground, *plan, contest, *bound.type, settings);
    if (!candidate.ok()) {
      refused = refused.ok() ? candidate.status() : refused;
      if (draw > trials && contest.candidates_size() <= 1) {
        break;
      }
      continue;
    }
    candidate->set_name(candidate->settings().empty() ? "as it is" : candidate->settings());
    candidate->set_kind(bound.type->name);
    *contest.add_candidates() = std::move(candidate).value();
  }
  if (contest.candidates_size() <= 1 && !refused.ok()) {
    return refused;
  }
  *plan->mutable_contest() = std::move(contest);
  return OkStatus();
}

}  // namespace sluice::planner
