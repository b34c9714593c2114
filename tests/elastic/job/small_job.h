#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "elastic/job/training_job.h"
#include "models/model.h"
#include "planner/plan.pb.h"
#include "tests/support/memory_source.h"

namespace sluice::elastic {

// Two numbers and a category with fifty values determine a class; a tenth of the labels is noise.
inline std::vector<std::vector<double>> SmallRows(int64_t count, uint64_t seed = 7) {
  std::vector<std::vector<double>> rows;
  uint64_t state = seed;
  const auto uniform = [&state] {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<double>(state >> 40) / static_cast<double>(1 << 24);
  };
  for (int64_t i = 0; i < count; ++i) {
    const double a = uniform() * 2 - 1, b = uniform() * 2 - 1;
    const double category = std::floor(uniform() * 50);
    const double score = a + 0.5 * b + (static_cast<int>(category) % 3 == 0 ? 0.7 : -0.4);
    rows.push_back({a, b, category, (score > 0) != (uniform() < 0.1) ? 1.0 : 0.0});
  }
  return rows;
}

inline std::unique_ptr<testing::MemorySource> SmallSource(int64_t rows) {
  return std::make_unique<testing::MemorySource>(std::vector<std::string>{"a", "b", "c", "y"},
                                                 SmallRows(rows));
}

// A deep classifier with an embedding over the rows of SmallSource.
inline plan::TrainPlan SmallPlan(uint32_t epochs, uint32_t batch_size) {
  plan::TrainPlan plan;
  models::ModelSpec& model = *plan.mutable_model();
  model.set_type("DNNClassifier");
  model.set_loss("logistic");
  model.set_seed(11);
  models::FeaturePlan& features = *model.mutable_features();
  for (const char* name : {"a", "b", "c"}) {
    models::InputColumn* input = features.add_inputs();
    input->set_name(name);
    input->set_type(static_cast<int>(DataType::kDouble));
  }
  for (uint32_t i = 0; i < 2; ++i) {
    models::Feature* feature = features.add_features();
    feature->set_name(i == 0 ? "a" : "b");
    feature->add_inputs(i);
    feature->set_kind(models::Feature::NUMERIC);
    feature->set_scale(1);
  }
  models::Feature* category = features.add_features();
  category->set_name("c");
  category->add_inputs(2);
  category->set_kind(models::Feature::CATEGORY);
  category->set_representation(models::Feature::EMBEDDING);
  category->set_dimension(4);
  category->set_combiner("sum");
  category->mutable_categorizer()->set_kind(models::Categorizer::IDENTITY);
  category->mutable_categorizer()->set_buckets(51);
  category->mutable_categorizer()->set_null_bucket(50);
  category->mutable_categorizer()->set_oov_bucket(50);
  models::LabelPlan& label = *features.mutable_label();
  label.set_kind(models::LabelPlan::CLASS);
  label.set_column("y");
  label.set_type(static_cast<int>(DataType::kDouble));
  label.add_classes("0");
  label.add_classes("1");
  models::Attribute* hidden = model.add_attributes();
  hidden->set_name("model.hidden_units");
  hidden->mutable_numbers()->add_values(16);
  for (models::OptimizerSpec* optimizer :
       {model.mutable_deep_optimizer(), model.mutable_wide_optimizer()}) {
    optimizer->set_name("Adagrad");
    models::Attribute* rate = optimizer->add_arguments();
    rate->set_name("learning_rate");
    rate->set_number(0.1);
  }
  plan.set_epochs(epochs);
  plan.set_batch_size(batch_size);
  plan.set_seed(11);
  plan.set_shuffle(true);
  plan.mutable_split()->set_kind(plan::Split::RANDOM);
  plan.mutable_split()->set_fraction(0.1);
  plan.mutable_split()->set_seed(11);
  plan.mutable_strategy()->set_kind(plan::Strategy::LOCAL);
  return plan;
}

// SmallPlan with layers of 64 and 32 units, for two workers and two servers.
inline plan::TrainPlan TwoByTwoPlan(uint32_t epochs, uint32_t batch_size) {
  plan::TrainPlan plan = SmallPlan(epochs, batch_size);
  for (models::Attribute& attribute : *plan.mutable_model()->mutable_attributes()) {
    if (attribute.name() == "model.hidden_units") {
      attribute.mutable_numbers()->clear_values();
      attribute.mutable_numbers()->add_values(64);
      attribute.mutable_numbers()->add_values(32);
    }
  }
  plan.mutable_strategy()->set_kind(plan::Strategy::PARAMETER_SERVER);
  plan.mutable_strategy()->set_workers(2);
  plan.mutable_strategy()->set_parameter_servers(2);
  return plan;
}

inline double MetricOf(const TrainOutcome& outcome, const std::string& name) {
  for (const auto& [metric, value] : outcome.metrics) {
    if (metric == name) {
      return value;
    }
  }
  return std::nan("");
}

}  // namespace sluice::elastic
