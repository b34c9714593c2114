#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/letter_case.h"
#include "planner/plan_contest_internal.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;
using models::ModelType;

constexpr int64_t kMaxAutomaticRows = 1'000'000;
constexpr double kAutomaticSeconds = 30;

const char* KindOf(const ModelType& type) {
  switch (type.family) {
    case ModelFamily::kLinear:
      return "linear";
    case ModelFamily::kDeep:
      return type.build ? "factorization" : "network";
    case ModelFamily::kWideDeep:
      return "wide_deep";
    case ModelFamily::kTrees:
      break;
  }
  return "trees";
}

const plan::Candidate* FindKind(const plan::Contest& contest, const std::string& kind) {
  for (const plan::Candidate& candidate : contest.candidates()) {
    if (candidate.kind() == kind) {
      return &candidate;
    }
  }
  return nullptr;
}

// The kinds in auto.candidates, which may be `further` ones; all of `open` if it is not given.
Status ReadKinds(const ContestRequest& request, const std::vector<const ModelType*>& open,
                 const std::vector<const ModelType*>& further, std::vector<const ModelType*>* types,
                 bool* blends) {
  const auto asked = request.automatic.Texts("auto.candidates");
  if (!asked) {
    *types = open;
    *blends = true;
    return OkStatus();
  }
  std::vector<const ModelType*> known = open;
  std::copy_if(
      further.begin(), further.end(), std::back_inserter(known),
      [&](const ModelType* one) { return std::find(open.begin(), open.end(), one) == open.end(); });
  for (const std::string& name : *asked) {
    const std::string folded = LowerAscii(name);
    if (folded == "blend") {
      *blends = true;
      continue;
    }
    const auto found = std::find_if(known.begin(), known.end(), [&](const ModelType* type) {
      return folded == KindOf(*type) || folded == LowerAscii(type->name) ||
             (folded == "dnn" && type->family == ModelFamily::kDeep && !type->build);
    });
    if (found == known.end()) {
      std::vector<std::string> names = {"blend"};
      for (const ModelType* type : known) {
        names.emplace_back(KindOf(*type));
        names.push_back(type->name);
      }
      const auto nearest = NearestName(name, names);
      return InvalidArgument(fmt::format("auto.candidates has no '{}'", name))
          .At(request.automatic.SpanOf("auto.candidates"))
          .Hint(nearest ? fmt::format("did you mean '{}'?", *nearest)
                        : fmt::format("there are {}", fmt::join(names, ", ")));
    }
    if (std::find(types->begin(), types->end(), *found) == types->end()) {
      types->push_back(*found);
    }
  }
  if (types->empty()) {
    return InvalidArgument("auto.candidates names nothing to train")
        .At(request.automatic.SpanOf("auto.candidates"))
        .Hint("write auto.candidates=['linear', 'network', 'trees', 'blend']");
  }
  return OkStatus();
}

// Why only the statement's own choice is trained; "": others are tried.
std::string WhyNot(const BoundTrain& bound, const plan::TrainPlan& plan) {
  if (bound.open_types.empty()) {
    return "the statement asks for what not every kind of model has";
  }
  for (const auto& [name, entry] : bound.attributes.entries()) {
    if (entry.given && !entry.spec->without_effect && name.starts_with("train.") &&
        name != "train.calibrate" && name != "train.label_scale") {
      return fmt::format("{} says how to train", name);
    }
  }
  if (plan.has_checkpoints()) {
    return "the training keeps checkpoints, and candidates keep none";
  }
  return "";
}

// With many columns, perhaps only a few matter: adds each kind again, and slow trees, on the
// columns that trees gain most by.
void AddSelective(const BoundTrain& bound, plan::Contest* contest) {
  constexpr int kManyFeatures = 40;
  const plan::Candidate* trees = FindKind(*contest, "trees");
  if (trees == nullptr || bound.features.features_size() < kManyFeatures) {
    return;
  }
  std::set<std::string> kinds;
  std::vector<plan::Candidate> selective;
  for (const plan::Candidate& candidate : contest->candidates()) {
    const bool slow_trees = candidate.kind() == "trees" && !candidate.settings().empty();
    const bool first = candidate.kind() != "trees";
    if ((slow_trees || first) && kinds.insert(candidate.kind()).second) {
      plan::Candidate again = candidate;
      again.set_name(candidate.name() + ", on the most important columns");
      again.set_selects(true);
      selective.push_back(std::move(again));
    }
  }
  contest->mutable_candidates()->Add(selective.begin(), selective.end());
}

std::string Announce(const plan::Contest& contest, const BoundTrain& bound) {
  const bool higher = models::Metrics::HigherIsBetter(contest.metric());
  return fmt::format(
      "{} models are tried for at most {:.6g} seconds: {}; the one with the {} {} on {}{} is kept; "
      "auto.seconds sets the time, TO TRAIN xgboost.gbtree trains that type alone",
      contest.candidates_size(), contest.seconds(), bound.shape, higher ? "highest" : "lowest",
      contest.metric(),
      contest.folds() > 0 ? fmt::format("{} folds", contest.folds()) : "validation rows",
      contest.blends() ? ", or a blend of several," : "");
}

}  // namespace

Status FillKinds(const ContestSetup& ground, plan::TrainPlan* plan) {
  const BoundTrain& bound = ground.bound;
  const AttributeSet& automatic = ground.request.automatic;
  const Span span = ground.request.automatic_span;
  if (bound.chosen_because.empty()) {
    return !span.valid() ? OkStatus()
                         : InvalidArgument("auto.* is for statements that name no model type")
                               .At(span)
                               .Hint(
                                   "leave TO TRAIN and the type out; or tune.* searches the "
                                   "attributes of one type");
  }
  const double seconds =
      automatic.Number("auto.seconds")
          .value_or(bound.statistics.rows < kMaxAutomaticRows ? kAutomaticSeconds : 0);
  std::string why_not = WhyNot(bound, *plan);
  plan::Contest contest;
  if (seconds > 0 && why_not.empty() && !FillContestRows(bound, *plan, &contest)) {
    why_not = "there are no validation rows to judge by";
  }
  if (seconds <= 0 || !why_not.empty()) {
    if (span.valid() && seconds > 0) {
      plan->add_told(fmt::format("only {} is trained: {}", plan->model().type(), why_not));
    }
    return OkStatus();
  }
  contest.set_seconds(seconds);
  RETURN_IF_ERROR(FillContestMetric(automatic, "auto.metric", *plan, &contest));
  const bool classes = bound.features.label().kind() == models::LabelPlan::CLASS;
  const std::vector<const ModelType*> further = {
      models::FindModelType(classes ? "DNNLinearCombinedClassifier" : "DNNLinearCombinedRegressor"),
      models::FindModelType(classes ? "FMClassifier" : "FMRegressor")};
  std::vector<const ModelType*> types;
  bool blends = false;
  RETURN_IF_ERROR(ReadKinds(ground.request, bound.open_types, further, &types, &blends));
  for (const uint32_t stage : {0U, 1U}) {
    for (const ModelType* type : types) {
      std::vector<Variant> variants =
          stage == 0 ? std::vector<Variant>{FirstOf(*type, bound)}
                     : VariantsOf(*type, bound, FindKind(contest, KindOf(*type)));
      for (const Variant& variant : variants) {
        std::vector<parser::Attribute> settings;
        for (const auto& [name, value] : variant.settings) {
          parser::Attribute setting;
          setting.name.text = name;
          setting.name.parts = {name};
          setting.value = value;
          settings.push_back(std::move(setting));
        }
        Result<plan::Candidate> candidate = MakeCandidate(ground, *plan, contest, *type, settings);
        const std::string name =
            *variant.name == '\0' ? type->name : fmt::format("{}, {}", type->name, variant.name);
        if (!candidate.ok()) {
          plan->add_notes(fmt::format("{} is not tried: {}", name, candidate.status().message()));
          continue;
        }
        candidate->set_name(name);
        candidate->set_kind(KindOf(*type));
        *contest.add_candidates() = std::move(candidate).value();
      }
    }
  }
  const bool here = plan->strategy().kind() == plan::Strategy::LOCAL;
  if (here) {
    AddSelective(bound, &contest);
  }
  if (contest.candidates_size() == 0) {
    return OkStatus();
  }
  contest.set_blends(blends && here && contest.candidates_size() > 1);
  plan->set_chosen_because(Announce(contest, bound));
  *plan->mutable_contest() = std::move(contest);
  return OkStatus();
}

}  // namespace sluice::planner
