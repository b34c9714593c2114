#include "executor/scoring/decision_threshold.h"

#include <cmath>
#include <string>

#include "catalog/model_store.h"
#include "models/features/cell_format.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::executor {

std::optional<double> DecisionThreshold(const plan::TrainPlan& plan,
                                        const catalog::ModelVersion& version) {
  const std::string& rule = plan.threshold();
  if (rule.empty()) {
    return std::nullopt;
  }
  if (const std::optional<double> number = models::ParseNumber(rule)) {
    return *number;
  }
  const std::string metric =
      rule == "f1" ? "best_f1_threshold"
                   : models::Metrics::CostThresholdName(rule.substr(rule.find(':') + 1));
  for (const auto& [name, value] : version.metrics) {
    if (name == metric && std::isfinite(value)) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::executor
