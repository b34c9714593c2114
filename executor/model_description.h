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

// One row of DESCRIBE MODEL: section "model", "feature", "left out", "attribute", "metric",
// "warning", "note" or "lineage".
struct DescriptionLine {
  std::string section;
  std::string name;
  std::string value;
};

// Everything that is stored about a version, for a reader. Pure.
// `importance`: by feature its share of all that the model has learnt from, where that is known.
std::vector<DescriptionLine> DescribeVersion(const catalog::ModelVersion& version,
                                             const plan::TrainPlan& plan,
                                             const std::map<std::string, double>& importance = {});

}  // namespace sluice::executor
