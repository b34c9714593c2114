#include "elastic/job/further_metrics.h"

#include "models/metrics/decision_table.h"
#include "models/metrics/metric.h"
#include "planner/plan.pb.h"

namespace sluice::elastic {

std::vector<std::string> FurtherMetrics(const plan::TrainPlan& plan) {
  std::vector<std::string> names;
  for (const std::string& name : plan.metrics()) {
    names.push_back(models::Metrics::CanonicalName(name));
  }
  if (models::TaskOf(plan.model()) == models::Task::kBinary) {
    for (const char* name : {"balanced_accuracy", "best_f1", "best_f1_threshold"}) {
      names.emplace_back(name);
    }
    const std::vector<std::string> table = models::DecisionMetrics();
    names.insert(names.end(), table.begin(), table.end());
    if (!plan.threshold().empty()) {
      const std::vector<std::string> chosen = models::CountsBy(plan.threshold());
      names.insert(names.end(), chosen.begin(), chosen.end());
    }
    if (plan.threshold().starts_with("cost:")) {
      names.push_back(models::Metrics::CostThresholdName(plan.threshold().substr(5)));
    }
  }
  return names;
}

}  // namespace sluice::elastic
