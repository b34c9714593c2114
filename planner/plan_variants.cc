#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "planner/choose.h"
#include "planner/choose_type.h"
#include "planner/plan_contest_internal.h"

namespace sluice::planner {
namespace {

using models::ModelFamily;
using models::ModelType;
using Settings = std::vector<std::pair<const char*, parser::AttributeValue>>;

constexpr char kScaleOfLabel[] = "train.label_scale";

parser::AttributeValue Whole(int64_t value) {
  return {value, {}};
}
parser::AttributeValue Real(double value) {
  return {value, {}};
}
parser::AttributeValue TextValue(std::string word) {
  return {std::move(word), {}};
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

// A factorization of what the identifiers alone say: the vectors of further columns, which say
// less, would be learnt by heart.
Variant OfIdentifiers(const BoundTrain& bound) {
  std::vector<std::string> names =
      Identifiers(bound.select.schema, bound.features.label().column(), bound.statistics);
  std::erase_if(names, [&bound](const std::string& name) {
    return std::none_of(bound.features.inputs().begin(), bound.features.inputs().end(),
                        [&name](const models::InputColumn& input) { return input.name() == name; });
  });
  if (names.size() < 2 || bound.attributes.Given("features.only") ||
      bound.attributes.Given("features.exclude") ||
      static_cast<int>(names.size()) >= bound.features.inputs_size()) {
    return {"", {}};
  }
  parser::AttributeValue::List list;
  for (const std::string& name : names) {
    list.push_back(TextValue(name));
  }
  return {"of the identifiers", {{"features.only", {list, {}}}}};
}

Settings WeightDecay(double decay) {
  return {{"model.optimizer", TextValue("AdamW")}, {"optimizer.weight_decay", Real(decay)}};
}

}  // namespace

// A network learns numbers with a heavy tail best as square roots, which dampens the few large
// ones.
Variant FirstOf(const ModelType& type, const BoundTrain& bound) {
  if (type.build) {
    return OfIdentifiers(bound);
  }
  const bool deep = type.family == ModelFamily::kDeep || type.family == ModelFamily::kWideDeep;
  return deep && !bound.other_scales.empty()
             ? Variant{"square root of the label", {{kScaleOfLabel, TextValue("root")}}}
             : Variant{"", {}};
}

std::vector<Variant> VariantsOf(const ModelType& type, const BoundTrain& bound,
                                const plan::Candidate* own) {
  // With so few rows per weight, regularisation matters most.
  constexpr int64_t kFewRowsPerWeight = 30;
  const bool few = ChooseFolds(bound.statistics.rows) > 0;
  const double step = StepOf(bound);
  const bool tailed = !bound.other_scales.empty();
  if (type.family == ModelFamily::kTrees) {
    // With fewer columns, trees do not sample them.
    constexpr int kSampledColumns = 8;
    const bool samples = bound.features.features_size() >= kSampledColumns;
    const auto slower = [samples, few](double eta, int64_t depth) {
      Settings settings = {{"train.num_boost_round", Whole(2'000)},
                           {"train.early_stopping_rounds", Whole(50)},
                           {"eta", Real(eta)},
                           {"max_depth", Whole(depth)},
                           {"subsample", Real(few ? 0.7 : 0.8)}};
      if (few) {
        // Which rows and columns a tree sees matters much: four of them a round even that out.
        settings.emplace_back("colsample_bynode", Real(samples ? 0.5 : 1));
        settings.emplace_back("num_parallel_tree", Whole(4));
      } else {
        settings.emplace_back("colsample_bytree", Real(samples ? 0.8 : 1));
      }
      return settings;
    };
    std::vector<Variant> variants = {{"lower learning rate", slower(step, 6)}};
    if (tailed) {
      for (const auto& [name, depth] :
           {std::pair{"lower learning rate, square root of the label", 6},
            std::pair{"deeper, square root of the label", 8}}) {
        variants.push_back({name, slower(step, depth)});
        variants.back().settings.emplace_back(kScaleOfLabel, TextValue("root"));
      }
    } else {
      variants.push_back({"deeper", slower(step, 9)});
    }
    variants.push_back({"shallower", slower(std::round(1500 * step) / 1000, 4)});
    return variants;
  }
  if (type.family == ModelFamily::kLinear && own != nullptr && own->plan().optimum() &&
      own->plan().parameter_count() * kFewRowsPerWeight > bound.statistics.rows) {
    if (tailed) {
      return {{"square root of the label", {{kScaleOfLabel, TextValue("root")}}},
              {"logarithm of the label", {{kScaleOfLabel, TextValue("log")}}},
              {"logarithm of the label, ridge 6",
               {{kScaleOfLabel, TextValue("log")}, {"model.ridge", Real(6)}}}};
    }
    return {{"ridge 6", {{"model.ridge", Real(6)}}},
            {"ridge 40", {{"model.ridge", Real(40)}}},
            {"ridge 250", {{"model.ridge", Real(250)}}}};
  }
  if (type.family == ModelFamily::kLinear && tailed) {
    return {{"square root of the label", {{kScaleOfLabel, TextValue("root")}}},
            {"logarithm of the label", {{kScaleOfLabel, TextValue("log")}}}};
  }
  if (type.build) {
    return OfIdentifiers(bound).settings.empty() ? std::vector<Variant>()
                                                 : std::vector<Variant>{{"of all columns", {}}};
  }
  if (type.family == ModelFamily::kDeep) {
    const bool classes = bound.features.label().kind() == models::LabelPlan::CLASS;
    std::vector<Variant> variants;
    if (few) {
      variants.push_back({"with weight decay", WeightDecay(classes ? 2 : 0.5)});
    }
    variants.push_back({"wider", {{"model.hidden_units", Widths({256, 128, 64})}}});
    Variant& wider = variants.back();
    if (classes) {
      const auto decay = WeightDecay(0.1);
      wider.settings.insert(wider.settings.end(), decay.begin(), decay.end());
    }
    if (tailed) {
      for (Variant& variant : variants) {
        variant.settings.emplace_back(kScaleOfLabel, TextValue("root"));
      }
      wider.name = "wider, square root of the label";
      variants.push_back({"label untransformed", {{kScaleOfLabel, TextValue("straight")}}});
    } else {
      variants.push_back(
          {"with dropout",
           {{"model.hidden_units", Widths({256, 128})}, {"model.dropout", Real(0.2)}}});
    }
    return variants;
  }
  return {};
}

}  // namespace sluice::planner
