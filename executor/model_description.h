#pragma once

#include <string>
#include <vector>

namespace sluice::catalog {
struct ModelVersion;
}
namespace sluice::plan {
class TrainPlan;
}

namespace sluice::executor {

// One row of DESCRIBE MODEL: section "model", "feature", "left out", "attribute", "metric",
// "warning", "note" or "lineage".
struct DescriptionLine {
  std::string section;
  std::string name;
  std::string value;
};

// Everything that is stored about a version, for a reader. Pure.
std::vector<DescriptionLine> DescribeVersion(const catalog::ModelVersion& version,
                                             const plan::TrainPlan& plan);

}  // namespace sluice::executor
