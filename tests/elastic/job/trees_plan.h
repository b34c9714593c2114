#pragma once

#include <string>

#include "tests/elastic/job/small_job.h"

namespace sluice::elastic {

inline void Set(models::ModelSpec* model, const std::string& name, int64_t value) {
  models::Attribute* attribute = model->add_attributes();
  attribute->set_name(name);
  attribute->set_integer(value);
}

// Boosted trees of SmallSource's rows.
inline plan::TrainPlan TreesPlan(int64_t rounds, uint32_t workers) {
  plan::TrainPlan plan = SmallPlan(1, 64);
  models::ModelSpec& model = *plan.mutable_model();
  model.set_type("xgboost.gbtree");
  model.clear_loss();
  model.clear_attributes();
  Set(&model, "train.num_boost_round", rounds);
  Set(&model, "nthread", 1);
  model.mutable_features()->mutable_features(2)->set_representation(models::Feature::INDICATOR);
  plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
  plan.mutable_strategy()->set_workers(workers);
  return plan;
}

}  // namespace sluice::elastic
