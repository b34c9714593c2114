#include "tests/simulation/linear_model.h"

#include <fmt/core.h>

#include <map>

#include "base/check.h"
#include "base/value.h"

namespace sluice::elastic::simulation {
namespace {

// A linear model with this many weights.
models::ModelSpec LinearSpec(size_t weights) {
  models::ModelSpec model;
  model.set_type("LinearRegressor");
  model.set_loss("squared");
  models::FeaturePlan& features = *model.mutable_features();
  for (uint32_t i = 0; i < weights; ++i) {
    models::InputColumn* input = features.add_inputs();
    input->set_name(fmt::format("x{}", i));
    input->set_type(static_cast<int>(DataType::kDouble));
    models::Feature* feature = features.add_features();
    feature->set_name(input->name());
    feature->add_inputs(i);
    feature->set_kind(models::Feature::NUMERIC);
    feature->set_scale(1);
  }
  models::LabelPlan& label = *features.mutable_label();
  label.set_kind(models::LabelPlan::NUMBER);
  label.set_column("y");
  label.set_type(static_cast<int>(DataType::kDouble));
  label.set_scale(1);
  for (models::OptimizerSpec* optimizer :
       {model.mutable_deep_optimizer(), model.mutable_wide_optimizer()}) {
    optimizer->set_name("SGD");
    models::Attribute* rate = optimizer->add_arguments();
    rate->set_name("learning_rate");
    rate->set_number(1);
  }
  return model;
}

}  // namespace

const LinearModel& LinearModelOf(size_t weights) {
  thread_local std::map<size_t, LinearModel> models;
  LinearModel& model = models[weights];
  if (model.network == nullptr) {
    model.spec = LinearSpec(weights);
    Result<std::unique_ptr<models::Network>> network = models::Network::Make(model.spec);
    SLUICE_CHECK(network.ok(), "the simulated model can be made");
    model.network = std::move(*network);
    for (size_t i = 0; i < model.network->dense().size(); ++i) {
      model.tensor = model.network->dense()[i].size() == weights ? i : model.tensor;
    }
  }
  return model;
}

}  // namespace sluice::elastic::simulation
