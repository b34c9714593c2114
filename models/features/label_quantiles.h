#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::models {

class ModelSpec;

// The loss whose outputs are quantiles of a number.
inline constexpr std::string_view kQuantileLoss = "quantile";

// model.quantiles, ascending, of a model with that loss; empty for any other.
std::vector<double> LabelQuantiles(const ModelSpec& spec);

// "q10" for 0.1, "q2_5" for 0.025: ends the name of the quantile's column and metric.
std::string QuantileName(double quantile);

}  // namespace sluice::models
