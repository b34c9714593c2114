#include "models/features/label_quantiles.h"
#include "models/metrics/metric.h"
#include "models/model.pb.h"

namespace sluice::models {

Task TaskOf(const ModelSpec& model) {
  for (const Attribute& attribute : model.attributes()) {
    if (attribute.name() == "objective" && attribute.text().starts_with("rank:")) {
      return Task::kRanking;
    }
  }
  if (model.loss() == kQuantileLoss) {
    return Task::kQuantiles;
  }
  const LabelPlan& label = model.features().label();
  if (label.kind() != LabelPlan::CLASS) {
    return Task::kRegression;
  }
  return label.classes_size() > 2 ? Task::kMulticlass : Task::kBinary;
}

}  // namespace sluice::models
