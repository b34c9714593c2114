#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/value.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "models/networks/initialize.h"
#include "models/networks/optimizer.h"

// Small hand-written specs, and a store for a network's parameters.
namespace sluice::models {

inline ModelSpec Spec(const std::string& type) {
  ModelSpec spec;
  spec.set_type(type);
  spec.set_seed(11);
  return spec;
}

inline ModelSpec DeepSpec(const std::vector<double>& hidden,
                          const std::string& type = "DNNClassifier") {
  ModelSpec spec = Spec(type);
  Attribute* attribute = spec.add_attributes();
  attribute->set_name("model.hidden_units");
  for (const double width : hidden) {
    attribute->mutable_numbers()->add_values(width);
  }
  return spec;
}

inline void SetText(ModelSpec* spec, const std::string& name, const std::string& text) {
  Attribute* attribute = spec->add_attributes();
  attribute->set_name(name);
  attribute->set_text(text);
}
inline void SetNumber(ModelSpec* spec, const std::string& name, double number) {
  Attribute* attribute = spec->add_attributes();
  attribute->set_name(name);
  attribute->set_number(number);
}

inline Feature* AddFeature(ModelSpec* spec, const std::string& name, DataType type) {
  FeaturePlan* plan = spec->mutable_features();
  Feature* feature = plan->add_features();
  feature->set_name(name);
  feature->add_inputs(static_cast<uint32_t>(plan->inputs_size()));
  InputColumn* input = plan->add_inputs();
  input->set_name(name);
  input->set_type(static_cast<int>(type));
  return feature;
}

inline Feature* AddNumber(ModelSpec* spec, const std::string& name) {
  Feature* feature = AddFeature(spec, name, DataType::kDouble);
  feature->set_kind(Feature::NUMERIC);
  feature->set_scale(1);
  return feature;
}

// dimension 0: an indicator.
inline Feature* AddCategory(ModelSpec* spec, const std::string& name, uint32_t buckets,
                            uint32_t dimension) {
  Feature* feature = AddFeature(spec, name, DataType::kInt64);
  feature->set_kind(Feature::CATEGORY);
  feature->set_representation(dimension == 0 ? Feature::INDICATOR : Feature::EMBEDDING);
  feature->set_dimension(dimension);
  feature->set_combiner("sum");
  feature->mutable_categorizer()->set_kind(Categorizer::IDENTITY);
  feature->mutable_categorizer()->set_buckets(buckets);
  feature->mutable_categorizer()->set_null_bucket(-1);
  feature->mutable_categorizer()->set_oov_bucket(-1);
  return feature;
}

inline void SetClasses(ModelSpec* spec, int classes) {
  LabelPlan* label = spec->mutable_features()->mutable_label();
  label->set_kind(LabelPlan::CLASS);
  label->set_column("y");
  label->set_type(static_cast<int>(DataType::kInt64));
  for (int i = 0; i < classes; ++i) {
    label->add_classes(std::to_string(i));
  }
}

inline void SetNumberLabel(ModelSpec* spec, double mean, double scale) {
  LabelPlan* label = spec->mutable_features()->mutable_label();
  label->set_kind(LabelPlan::NUMBER);
  label->set_column("y");
  label->set_type(static_cast<int>(DataType::kDouble));
  label->set_mean(mean);
  label->set_scale(scale);
}

inline std::unique_ptr<Network> MakeNetwork(const ModelSpec& spec) {
  auto made = Network::Make(spec);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? std::move(made).value() : nullptr;
}

// All parameters of a network in memory, with their optimizer slots.
class ParameterStore {
 public:
  ParameterStore(Network* network, uint64_t seed, const std::string& optimizer = "SGD",
                 double rate = 0.1)
      : network_(network), seed_(seed) {
    OptimizerSpec spec;
    spec.set_name(optimizer);
    spec.add_arguments()->set_name("learning_rate");
    spec.mutable_arguments(0)->set_number(rate);
    optimizer_ = std::move(Optimizer::Make(spec)).value();
    for (const DenseTensor& tensor : network->dense()) {
      std::vector<float> values(tensor.size() * (1 + optimizer_->slot_count()));
      InitializeDense(tensor, seed, std::span(values).subspan(0, tensor.size()));
      optimizer_->InitializeSlots(std::span(values).subspan(tensor.size()), tensor.size());
      dense_.push_back(std::move(values));
    }
    rows_.resize(network->tables().size());
  }

  std::vector<float>& Row(size_t table, int64_t id) {
    std::vector<float>& row = rows_[table][id];
    if (row.empty()) {
      const EmbeddingTable& own = network_->tables()[table];
      row.resize(own.dimension * (1 + optimizer_->slot_count()));
      RowInitializer(own, seed_).Fill(id, std::span(row).subspan(0, own.dimension));
      optimizer_->InitializeSlots(std::span(row).subspan(own.dimension), own.dimension);
    }
    return row;
  }
  std::vector<float>& Dense(size_t tensor) { return dense_[tensor]; }

  // Collects ids and pulls their rows.
  ParameterView& View(const FeatureBatch& batch) {
    view_.dense.clear();
    for (const std::vector<float>& tensor : dense_) {
      view_.dense.push_back(tensor.data());
    }
    network_->CollectIds(batch, &view_);
    for (size_t t = 0; t < rows_.size(); ++t) {
      const size_t dimension = network_->tables()[t].dimension;
      view_.tables[t].values.clear();
      for (const int64_t id : view_.tables[t].ids) {
        const std::vector<float>& row = Row(t, id);
        view_.tables[t].values.insert(view_.tables[t].values.end(), row.begin(),
                                      row.begin() + static_cast<std::ptrdiff_t>(dimension));
      }
    }
    return view_;
  }

  LossSum Train(const FeatureBatch& batch, int64_t step) {
    const ParameterView& view = View(batch);
    const LossSum loss = network_->Step(batch, view, static_cast<uint64_t>(step), &gradient_);
    for (size_t i = 0; i < dense_.size(); ++i) {
      const size_t n = network_->dense()[i].size();
      optimizer_->Update(dense_[i].data(), dense_[i].data() + n, gradient_.dense[i].data(), n, step,
                         1);
    }
    for (size_t t = 0; t < rows_.size(); ++t) {
      const size_t n = network_->tables()[t].dimension;
      for (size_t r = 0; r < view.tables[t].ids.size(); ++r) {
        std::vector<float>& row = Row(t, view.tables[t].ids[r]);
        optimizer_->Update(row.data(), row.data() + n, gradient_.tables[t].data() + r * n, n, step,
                           1);
      }
    }
    return loss;
  }

 private:
  Network* network_;
  uint64_t seed_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<std::vector<float>> dense_;
  std::vector<std::map<int64_t, std::vector<float>>> rows_;
  ParameterView view_;
  Gradient gradient_;
};

}  // namespace sluice::models
