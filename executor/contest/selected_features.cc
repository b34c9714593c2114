#include "executor/contest/selected_features.h"

#include <algorithm>
#include <map>
#include <vector>

#include "executor/scoring/scorer.h"
#include "models/graph/graph_builder.h"
#include "models/model.h"
#include "models/registry/registry.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Multiple of the median gain: noise varies less than that.
constexpr double kTimesMedian = 3;

}  // namespace

Result<std::set<std::string>> InformativeColumns(const models::ModelSpec& trees,
                                                 std::string_view weights) {
  ASSIGN_OR_RETURN(const auto scorer, Scorer::Make(trees, weights));
  ASSIGN_OR_RETURN(const auto importance, scorer->FeatureImportance());
  std::vector<double> gains(static_cast<size_t>(trees.features().features_size()), 0);
  std::set<std::string> kept;
  if (gains.empty() || importance.size() > gains.size()) {
    return kept;
  }
  std::transform(importance.begin(), importance.end(), gains.begin(),
                 [](const Scorer::Importance& one) { return one.gain; });
  const auto middle = gains.begin() + static_cast<std::ptrdiff_t>(gains.size() / 2);
  std::nth_element(gains.begin(), middle, gains.end());
  std::set<std::string> telling;
  for (const Scorer::Importance& one : importance) {
    if (one.gain > kTimesMedian * *middle) {
      telling.insert(one.feature);
    }
  }
  if (telling.size() * 2 > gains.size()) {
    return kept;
  }
  for (const models::Feature& feature : trees.features().features()) {
    for (const uint32_t input : feature.inputs()) {
      if (telling.count(feature.name()) > 0) {
        kept.insert(trees.features().inputs(static_cast<int>(input)).name());
      }
    }
  }
  return kept;
}

Status KeepColumns(const std::set<std::string>& kept, plan::TrainPlan* plan) {
  models::FeaturePlan* features = plan->mutable_model()->mutable_features();
  const models::FeaturePlan all = *features;
  features->clear_features();
  features->clear_inputs();
  std::map<uint32_t, uint32_t> places;  // of inputs: position in `all` -> position now
  for (const models::Feature& feature : all.features()) {
    const bool whole = std::all_of(
        feature.inputs().begin(), feature.inputs().end(),
        [&](uint32_t input) { return kept.count(all.inputs(static_cast<int>(input)).name()) > 0; });
    if (!whole) {
      continue;
    }
    models::Feature* own = features->add_features();
    *own = feature;
    for (uint32_t& input : *own->mutable_inputs()) {
      const auto [place, added] =
          places.emplace(input, static_cast<uint32_t>(features->inputs_size()));
      if (added) {
        *features->add_inputs() = all.inputs(static_cast<int>(input));
      }
      input = place->second;
    }
  }
  if (features->features_size() == 0) {
    return InvalidArgument("none of its features is left");
  }
  const models::ModelType* type = models::FindModelType(plan->model().type());
  if (type != nullptr && type->family != models::ModelFamily::kTrees) {
    if (type->build) {
      RETURN_IF_ERROR(models::BuildGraph(type->build, plan->mutable_model()).status());
    }
    ASSIGN_OR_RETURN(const auto network, models::Network::Make(plan->model()));
    plan->set_parameter_count(network->parameter_count());
  }
  return OkStatus();
}

}  // namespace sluice::executor
