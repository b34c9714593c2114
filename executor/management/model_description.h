#pragma once

#include <map>
#include <string>
#include <vector>

namespace sluice::catalog {
struct ModelVersion;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// One row of DESCRIBE MODEL: section "model", "feature", "left out", "given", "chosen", "metric",
// "confusion", "threshold", "warning", "note" or "lineage".
struct DescriptionLine {
  std::string section;
  std::string name;
  std::string value;
};

// Everything that is stored about a version, for display. Pure.
// `gains`: for trees, each feature's share of the total gain, if known. `before`: the previous
// version, or null.
std::vector<DescriptionLine> DescribeVersion(const catalog::ModelVersion& version,
                                             const plan::TrainPlan& plan,
                                             const std::map<std::string, double>& gains = {},
                                             const catalog::ModelVersion* before = nullptr);

}  // namespace sluice::executor
