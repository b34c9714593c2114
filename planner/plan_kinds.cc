#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "planner/letter_case.h"
#include "planner/plan_contest_internal.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;
using models::ModelType;

constexpr int64_t kMaxAutomaticRows = 1'000'000;
constexpr double kAutomaticSeconds = 30;
constexpr char kScaleOfLabel[] = "train.label_scale";

// A further setting of a kind: what a practitioner would vary first.
struct Variant {
  const char* name;
  std::vector<std::pair<const char*, parser::AttributeValue>> settings;
};

const char* KindOf(const ModelType& type) {
  switch (type.family) {
    case ModelFamily::kLinear:
      return "linear";
    case ModelFamily::kDeep:
      return "network";
    case ModelFamily::kWideDeep:
      return "wide_deep";
    case ModelFamily::kTrees:
      break;
  }
  return "trees";
}

parser::AttributeValue Whole(int64_t value) {
  return {value, {}};
}
parser::AttributeValue Real(double value) {
  return {value, {}};
}
parser::AttributeValue TextValue(const char* word) {
  return {std::string(word), {}};
}
parser::AttributeValue Widths(const std::vector<int64_t>& widths) {
  parser::AttributeValue::List list;
  for (const int64_t width : widths) {
    list.push_back(Whole(width));
  }
  return {list, {}};
}

// A tree's step size: the more work a round is, the fewer rounds there is time for.
double StepOf(const BoundTrain& bound) {
  constexpr double kSmall = 5e5;
  constexpr double kLarge = 3e6;
  const int classes = bound.features.label().classes_size();
  const double work = static_cast<double>(bound.statistics.rows) *
                      std::max(bound.features.features_size(), 1) * (classes > 2 ? classes : 1);
  return work <= kSmall ? 0.05 : work <= kLarge ? 0.08 : 0.15;
}

// The type's default settings; but a network learns numbers with a heavy tail best as square roots,
// which dampens the few large ones.
Variant FirstOf(const ModelType& type, const BoundTrain& bound) {
  const bool deep = type.family == ModelFamily::kDeep || type.family == ModelFamily::kWideDeep;
  return deep && !bound.other_scales.empty()
             ? Variant{"of the label's root", {{kScaleOfLabel, TextValue("root")}}}
             : Variant{"", {}};
}

// `own`: the plan with default settings; null: there is none.
std::vector<Variant> VariantsOf(const ModelType& type, const BoundTrain& bound,
                                const plan::Candidate* own) {
  // With so few rows per weight, regularisation matters most.
  constexpr int64_t kFewRowsPerWeight = 30;
  const double step = StepOf(bound);
  const bool tailed = !bound.other_scales.empty();
  if (type.family == ModelFamily::kTrees) {
    // With fewer columns, trees do not sample them.
    constexpr int kSampledColumns = 8;
    const double columns = bound.features.features_size() >= kSampledColumns ? 0.8 : 1;
    const auto slower = [columns](double eta, int64_t depth) {
      return std::vector<std::pair<const char*, parser::AttributeValue>>{
          {"train.num_boost_round", Whole(2'000)},
          {"train.early_stopping_rounds", Whole(50)},
          {"eta", Real(eta)},
          {"max_depth", Whole(depth)},
          {"subsample", Real(0.8)},
          {"colsample_bytree", Real(columns)}};
    };
    std::vector<Variant> variants = {{"more, smaller steps", slower(step, 6)}};
    if (tailed) {
      for (const auto& [name, depth] : {std::pair{"smaller steps to the label's root", 6},
                                        std::pair{"deeper, to the label's root", 8}}) {
        variants.push_back({name, slower(step, depth)});
        variants.back().settings.emplace_back(kScaleOfLabel, TextValue("root"));
      }
    } else {
      variants.push_back({"deeper", slower(step, 9)});
    }
    variants.push_back({"flatter", slower(std::round(1500 * step) / 1000, 4)});
    return variants;
  }
  if (type.family == ModelFamily::kLinear && own != nullptr && own->plan().optimum() &&
      own->plan().parameter_count() * kFewRowsPerWeight > bound.statistics.rows) {
    return {{"held back", {{"model.ridge", Real(6)}}},
            {"held back more", {{"model.ridge", Real(40)}}},
            {"held back most", {{"model.ridge", Real(250)}}}};
  }
  if (type.family == ModelFamily::kLinear && tailed) {
    return {{"of the label's root", {{kScaleOfLabel, TextValue("root")}}},
            {"of its logarithm", {{kScaleOfLabel, TextValue("log")}}}};
  }
  if (type.family == ModelFamily::kDeep) {
    Variant wider = {"wider", {{"model.hidden_units", Widths({256, 128, 64})}}};
    if (tailed) {
      wider.name = "wider, of the label's root";
      wider.settings.emplace_back(kScaleOfLabel, TextValue("root"));
      return {wider, {"of the label as it is", {{kScaleOfLabel, TextValue("straight")}}}};
    }
    return {wider,
            {"with dropout",
             {{"model.hidden_units", Widths({256, 128})}, {"model.dropout", Real(0.2)}}}};
  }
  return {};
}

const plan::Candidate* FindKind(const plan::Contest& contest, const std::string& kind) {
  for (const plan::Candidate& candidate : contest.candidates()) {
    if (candidate.kind() == kind) {
      return &candidate;
    }
  }
  return nullptr;
}

// The kinds in auto.candidates; all of `open` if it is not given.
Status ReadKinds(const ContestRequest& request, const std::vector<const ModelType*>& open,
                 const ModelType* wide, std::vector<const ModelType*>* types, bool* blends) {
  const auto asked = request.automatic.Texts("auto.candidates");
  if (!asked) {
    *types = open;
    *blends = true;
    return OkStatus();
  }
  std::vector<const ModelType*> known = open;
  if (std::find(known.begin(), known.end(), wide) == known.end()) {
    known.push_back(wide);
  }
  for (const std::string& name : *asked) {
    const std::string folded = LowerCase(name);
    if (folded == "blend") {
      *blends = true;
      continue;
    }
    const auto found = std::find_if(known.begin(), known.end(), [&](const ModelType* type) {
      return folded == KindOf(*type) || folded == LowerCase(type->name) ||
             (folded == "dnn" && type->family == ModelFamily::kDeep);
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
      again.set_name(candidate.name() + ", on the columns that tell most");
      again.set_selects(true);
      selective.push_back(std::move(again));
    }
  }
  contest->mutable_candidates()->Add(selective.begin(), selective.end());
}

std::string Announce(const plan::Contest& contest, const BoundTrain& bound) {
  const bool higher = models::Metrics::HigherIsBetter(contest.metric());
  return fmt::format(
      "{} models are tried for at most {:.6g} seconds: {}; the one with the {} {} on {} is kept{}; "
      "auto.seconds says how long, TO TRAIN xgboost.gbtree LABEL {} INTO ... which",
      contest.candidates_size(), contest.seconds(), bound.shape, higher ? "highest" : "least",
      contest.metric(),
      contest.folds() > 0 ? fmt::format("{} folds", contest.folds()) : "validation rows",
      contest.blends() ? ", or a blend of several" : "", bound.features.label().column());
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
  const ModelType* wide =
      models::FindModelType(classes ? "DNNLinearCombinedClassifier" : "DNNLinearCombinedRegressor");
  std::vector<const ModelType*> types;
  bool blends = false;
  RETURN_IF_ERROR(ReadKinds(ground.request, bound.open_types, wide, &types, &blends));
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
  if (!here && FindKind(contest, "trees") == nullptr) {
    plan->add_told(
        "boosted trees are not tried: they train in one process, and this training takes "
        "several; engine.strategy='local' tries them, too");
  }
  *plan->mutable_contest() = std::move(contest);
  return OkStatus();
}

}  // namespace sluice::planner
