#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "planner/rare_class_internal.h"

namespace sluice::planner {
namespace {

// Desired number of rows of the rarer class: a metric over fewer is little better than chance.
constexpr double kWantedRows = 25;
constexpr double kFewRows = 10;
constexpr double kMaxShare = 0.25;

bool IsShare(const plan::Split& split) {
  return split.kind() == plan::Split::RANDOM || split.kind() == plan::Split::TIME ||
         split.kind() == plan::Split::HASH;
}

double RowsOf(const RareClass& rare, const BoundTrain& bound) {
  return rare.share * static_cast<double>(bound.statistics.rows);
}

}  // namespace

std::optional<RareClass> RarerOfTwo(const BoundTrain& bound) {
  const models::LabelPlan& label = bound.features.label();
  const auto index = bound.select.columns.Find(label.column());
  if (label.kind() != models::LabelPlan::CLASS || label.classes_size() != 2 || !index) {
    return std::nullopt;
  }
  const auto& shares = bound.statistics.columns[*index].common_values;
  if (shares.size() != 2) {
    return std::nullopt;
  }
  const auto& rarer = shares[0].second < shares[1].second ? shares[0] : shares[1];
  return RareClass{rarer.first, rarer.second};
}

bool WidenForRareClass(const BoundTrain& bound, plan::Split* split) {
  const std::optional<RareClass> rare = RarerOfTwo(bound);
  if (!rare || !IsShare(*split) || bound.attributes.Given("split.fraction") ||
      RowsOf(*rare, bound) <= 0) {
    return false;
  }
  const double wanted = std::min(kWantedRows / RowsOf(*rare, bound), kMaxShare);
  if (split->fraction() >= wanted) {
    return false;
  }
  constexpr double kPercent = 100;
  split->set_fraction(std::ceil(wanted * kPercent) / kPercent);
  return true;
}

void ReportRareClass(const BoundTrain& bound, bool widened, plan::TrainPlan* plan) {
  const std::optional<RareClass> rare = RarerOfTwo(bound);
  if (!rare || !IsShare(plan->split())) {
    return;
  }
  const double rows = std::round(RowsOf(*rare, bound) * plan->split().fraction());
  constexpr double kPercent = 100;
  if (widened) {
    plan->add_told(
        fmt::format("validated on {:.0f} % of the rows, so that about {:.0f} of them "
                    "are '{}'; split.fraction says another share",
                    plan->split().fraction() * kPercent, rows, rare->name));
  }
  if (rows < kFewRows) {
    plan->add_warnings(
        fmt::format("only about {:.0f} of the validation rows are '{}': what they say of the model "
                    "is hardly more than chance",
                    rows, rare->name));
  }
}

}  // namespace sluice::planner
