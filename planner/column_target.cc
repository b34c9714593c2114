#include "planner/column_target.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace sluice::planner {
namespace {

using models::ModelFamily;

constexpr std::string_view kDefaultTarget = "feature_columns";
constexpr std::string_view kWideTarget = "linear_feature_columns";
constexpr std::string_view kDeepTarget = "dnn_feature_columns";

}  // namespace

std::string TargetOf(const parser::ColumnClause& clause) {
  return clause.target ? clause.target->text : std::string(kDefaultTarget);
}

Result<FeaturePart> PartOfTarget(const parser::ColumnClause& clause,
                                 const models::ModelType* type) {
  const std::string target = TargetOf(clause);
  std::vector<std::string> targets = type == nullptr ? std::vector<std::string>() : type->towers;
  if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
    return FeaturePart::Tower(target);
  }
  if (targets.empty()) {
    const bool wide_deep = type == nullptr || type->family == ModelFamily::kWideDeep;
    const bool linear = type != nullptr && type->family == ModelFamily::kLinear;
    const bool deep = type != nullptr && type->family == ModelFamily::kDeep;
    if (target == kDefaultTarget) {
      return FeaturePart(FeaturePart::kBoth);
    }
    if (target == kWideTarget && (wide_deep || linear)) {
      return FeaturePart(wide_deep ? FeaturePart::kWide : FeaturePart::kBoth);
    }
    if (target == kDeepTarget && (wide_deep || deep)) {
      return FeaturePart(wide_deep ? FeaturePart::kDeep : FeaturePart::kBoth);
    }
    targets.emplace_back(kDefaultTarget);
    if (wide_deep) {
      targets.emplace_back(kWideTarget);
      targets.emplace_back(kDeepTarget);
    }
  } else if (!clause.target) {
    return InvalidArgument(
               fmt::format("{} has several parts, and this COLUMN names none", type->name))
        .At(clause.span)
        .Hint(fmt::format("COLUMN ... FOR {}", fmt::join(targets, ", COLUMN ... FOR ")));
  }
  const auto nearest = NearestName(target, targets);
  return InvalidArgument(fmt::format("COLUMN ... FOR {}: {} has no such target", target,
                                     type == nullptr ? "the model" : type->name))
      .At(clause.target->span)
      .Hint(nearest && *nearest != target ? fmt::format("did you mean {}?", *nearest)
                                          : fmt::format("it has {}", fmt::join(targets, ", ")));
}

}  // namespace sluice::planner
