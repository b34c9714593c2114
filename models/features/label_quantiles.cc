#include "models/features/label_quantiles.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/model.pb.h"

namespace sluice::models {

std::vector<double> LabelQuantiles(const ModelSpec& spec) {
  if (spec.loss() != kQuantileLoss) {
    return {};
  }
  for (const Attribute& attribute : spec.attributes()) {
    if (attribute.name() == "model.quantiles") {
      return {attribute.numbers().values().begin(), attribute.numbers().values().end()};
    }
  }
  return {};
}

std::string QuantileName(double quantile) {
  std::string name = fmt::format("q{:.6g}", 100 * quantile);
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

}  // namespace sluice::models
