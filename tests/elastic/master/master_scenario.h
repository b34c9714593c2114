#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/elastic/master/master_steps.h"

namespace sluice::elastic {

// A job in which workers train and evaluate what the master hands out.
class MasterScenario : public MasterTest {
 protected:
  // Trains everything that is handed out.
  void Work(Incarnation worker, double now) {
    while (const std::optional<Task> task = Take(worker, now)) {
      ASSERT_TRUE(task->kind == Task::Kind::kTrain
                      ? master_->Report(worker, Done(*task), At(now)).ok()
                      : master_->Report(worker, Evaluated(*task, 0), At(now)).ok());
    }
  }
  static TaskReport Evaluated(const Task& task, float error) {
    models::Metrics metrics(models::Task::kRegression, 1);
    const std::vector<double> predictions(task.shards.size(), 1.0 + error);
    const std::vector<double> labels(task.shards.size(), 1.0);
    metrics.Add(predictions, labels, {});
    TaskReport report;
    report.task = task.id;
    report.done = true;
    report.rows = static_cast<int64_t>(task.shards.size());
    report.metrics = metrics.Serialize();
    return report;
  }
  void Evaluate(int64_t shards) {
    options_.evaluation_shards = shards;
    options_.task = models::Task::kRegression;
  }
  double Metric(const std::string& name) const {
    for (const auto& [metric, value] : master_->Outcome().metrics) {
      if (metric == name) {
        return value;
      }
    }
    return std::numeric_limits<double>::quiet_NaN();
  }
};

}  // namespace sluice::elastic
