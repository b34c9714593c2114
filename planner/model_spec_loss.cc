#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/features/label_quantiles.h"
#include "planner/model_spec_internal.h"

// Whether a loss suits the label, and whether what belongs to it is there.
namespace sluice::planner {

Status NeedsChoice(const BoundTrain& bound, std::string_view name, std::string_view other,
                   std::string_view chosen, const std::vector<std::string>& allowed) {
  if (!bound.attributes.Given(name) ||
      std::find(allowed.begin(), allowed.end(), chosen) != allowed.end()) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("attribute {} is for {} = {}, and {} is {}", name, other,
                                     fmt::join(allowed, " or "), other,
                                     chosen.empty() ? "not given" : chosen))
      .At(bound.attributes.SpanOf(name))
      .Hint("leave it out");
}

namespace {

// Losses that are undefined for some labels: the statistics show whether there are any.
Status CheckLossDomain(const BoundTrain& bound, const std::string& loss) {
  const bool gamma = loss == "Gamma";
  const std::optional<size_t> index = bound.select.columns.Find(bound.features.label().column());
  if ((!gamma && loss != "Tweedie" && loss != "Poisson") || !index) {
    return OkStatus();
  }
  const catalog::ColumnStatistics& numbers = bound.statistics.columns[*index];
  const bool fits = !numbers.has_range || (gamma ? numbers.min > 0 : numbers.min >= 0);
  if (fits) {
    return OkStatus();
  }
  return InvalidArgument(fmt::format("loss {} is for numbers {}, and label '{}' has {}", loss,
                                     gamma ? "above 0" : "of at least 0",
                                     bound.features.label().column(), FormatDouble(numbers.min)))
      .At(bound.attributes.SpanOf("model.loss"))
      .Hint(gamma && numbers.min == 0 ? "Tweedie takes zeros"
                                      : "squared, MeanAbsoluteError and Huber take any number");
}

// What is wrong with model.quantiles, at its place.
Status CheckQuantiles(const BoundTrain& bound, const std::string& loss) {
  constexpr char kName[] = "model.quantiles";
  constexpr size_t kMost = 99;
  constexpr double kLeastStep = 1e-5;  // or two of them would have columns of one name
  if (loss != models::kQuantileLoss) {
    return NeedsChoice(bound, kName, "model.loss", loss, {std::string(models::kQuantileLoss)});
  }
  if (!bound.attributes.Given(kName)) {
    return InvalidArgument("loss quantile needs the quantiles to learn")
        .At(bound.attributes.SpanOf("model.loss"))
        .Hint(fmt::format("{}=[0.1, 0.5, 0.9]", kName));
  }
  const Span span = bound.attributes.SpanOf(kName);
  const std::vector<double> quantiles =
      bound.attributes.Numbers(kName).value_or(std::vector<double>());
  if (quantiles.empty() || quantiles.size() > kMost) {
    return InvalidArgument(fmt::format("attribute {} holds from 1 to {} numbers, not {}", kName,
                                       kMost, quantiles.size()))
        .At(span)
        .Hint(fmt::format("{}=[0.1, 0.5, 0.9]", kName));
  }
  for (size_t i = 1; i < quantiles.size(); ++i) {
    if (quantiles[i] < quantiles[i - 1] + kLeastStep) {
      return InvalidArgument(fmt::format("attribute {} must ascend, and {} follows {}", kName,
                                         quantiles[i], quantiles[i - 1]))
          .At(span)
          .Hint("each of them once, the smallest first");
    }
  }
  return OkStatus();
}

}  // namespace

Status CheckLoss(const BoundTrain& bound, const std::string& loss) {
  Status errors = NeedsChoice(bound, "loss.delta", "model.loss", loss, {"Huber"});
  errors.Add(NeedsChoice(bound, "loss.variance_power", "model.loss", loss, {"Tweedie"}));
  errors.Add(CheckLossDomain(bound, loss));
  errors.Add(CheckQuantiles(bound, loss));
  errors.Add(NeedsChoice(bound, "model.exposure_column", "model.loss", loss,
                         {"Poisson", "Gamma", "Tweedie"}));
  return errors;
}

}  // namespace sluice::planner
