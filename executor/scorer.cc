#include "executor/scorer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "catalog/data_source.h"
#include "models/gradient_boosting.h"
#include "models/model.h"
#include "models/registry.h"
#include "planner/plan.pb.h"

namespace sluice::executor {
namespace {

// Row positions of one embedding table by id. Small tables are indexed directly.
class TableIndex {
 public:
  TableIndex(const models::NetworkWeights::Table& table, int64_t rows) {
    constexpr int64_t kDirectRows = int64_t{1} << 22U;  // 16 MiB of positions
    if (rows <= kDirectRows) {
      direct_.assign(static_cast<size_t>(rows), -1);
      for (size_t i = 0; i < table.ids.size(); ++i) {
        direct_[static_cast<size_t>(table.ids[i])] = static_cast<int64_t>(i);
      }
      return;
    }
    hashed_.reserve(table.ids.size());
    for (size_t i = 0; i < table.ids.size(); ++i) {
      hashed_.emplace(table.ids[i], static_cast<int64_t>(i));
    }
  }
  // -1: the row was never trained.
  int64_t Find(int64_t id) const {
    if (!direct_.empty()) {
      return direct_[static_cast<size_t>(id)];
    }
    const auto found = hashed_.find(id);
    return found == hashed_.end() ? -1 : found->second;
  }

 private:
  std::vector<int64_t> direct_;
  std::unordered_map<int64_t, int64_t> hashed_;
};

class NetworkScorer final : public Scorer {
 public:
  static Result<std::unique_ptr<Scorer>> Make(const models::ModelSpec& spec,
                                              std::string_view weights) {
    auto scorer = std::unique_ptr<NetworkScorer>(new NetworkScorer());
    ASSIGN_OR_RETURN(scorer->network_, models::Network::Make(spec));
    ASSIGN_OR_RETURN(scorer->weights_, models::LoadWeights(weights));
    RETURN_IF_ERROR(models::CheckShape(scorer->weights_, *scorer->network_));
    for (size_t t = 0; t < scorer->weights_.tables.size(); ++t) {
      scorer->indexes_.emplace_back(scorer->weights_.tables[t], scorer->network_->tables()[t].rows);
    }
    for (const std::vector<float>& tensor : scorer->weights_.dense) {
      scorer->view_.dense.push_back(tensor.data());
    }
    scorer->view_.tables.resize(scorer->weights_.tables.size());
    return std::unique_ptr<Scorer>(std::move(scorer));
  }

  const models::FeatureTransform& transform() const override { return network_->transform(); }
  size_t outputs() const override { return network_->outputs(); }

  Status Score(const models::FeatureBatch& batch, std::vector<float>* scores) override {
    network_->CollectIds(batch, &view_);
    for (size_t t = 0; t < view_.tables.size(); ++t) {
      models::RowSet& rows = view_.tables[t];
      const size_t dimension = network_->tables()[t].dimension;
      rows.values.resize(rows.ids.size() * dimension);
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const int64_t found = indexes_[t].Find(rows.ids[i]);
        float* to = rows.values.data() + i * dimension;
        if (found < 0) {  // never seen in training: says nothing, creates nothing
          std::fill_n(to, dimension, 0.0F);
        } else {
          std::copy_n(weights_.tables[t].values.data() + static_cast<size_t>(found) * dimension,
                      dimension, to);
        }
      }
    }
    network_->Predict(batch, view_, scores);
    return OkStatus();
  }

  Result<std::vector<Importance>> FeatureImportance() const override {
    return Unimplemented("feature importance of a network is not built yet")
        .Hint("TO EXPLAIN works for xgboost models");
  }

 private:
  NetworkScorer() = default;
  std::unique_ptr<models::Network> network_;
  models::NetworkWeights weights_;
  std::vector<TableIndex> indexes_;
  models::ParameterView view_;
};

class TreeScorer final : public Scorer {
 public:
  static Result<std::unique_ptr<Scorer>> Make(const models::ModelSpec& spec,
                                              std::string_view weights) {
    auto scorer = std::unique_ptr<TreeScorer>(new TreeScorer());
    ASSIGN_OR_RETURN(scorer->trees_, models::GradientBoosting::Make(spec));
    RETURN_IF_ERROR(scorer->trees_->Load(weights));
    return std::unique_ptr<Scorer>(std::move(scorer));
  }
  const models::FeatureTransform& transform() const override { return trees_->transform(); }
  size_t outputs() const override { return trees_->outputs(); }
  Status Score(const models::FeatureBatch& batch, std::vector<float>* scores) override {
    return trees_->Predict(batch, scores);
  }
  Result<std::vector<Importance>> FeatureImportance() const override {
    ASSIGN_OR_RETURN(const auto importance, trees_->FeatureImportance());
    std::vector<Importance> rows;
    for (const auto& feature : importance) {
      rows.push_back({feature.feature, feature.splits, feature.gain});
    }
    return rows;
  }

 private:
  TreeScorer() = default;
  std::unique_ptr<models::GradientBoosting> trees_;
};

}  // namespace

Result<std::unique_ptr<Scorer>> Scorer::Load(catalog::DataSource& source,
                                             const catalog::ModelVersion& version) {
  plan::TrainPlan plan;
  if (!plan.ParseFromString(version.plan)) {
    return Internal(fmt::format("the stored plan of model {} cannot be read", version.name));
  }
  ASSIGN_OR_RETURN(const std::string weights, source.models().LoadWeights(version));
  const models::ModelType* type = models::FindModelType(plan.model().type());
  if (type == nullptr) {
    return Internal(
        fmt::format("model {} is of the unknown type {}", version.name, plan.model().type()));
  }
  return type->family == models::ModelFamily::kTrees ? TreeScorer::Make(plan.model(), weights)
                                                     : NetworkScorer::Make(plan.model(), weights);
}

models::Task TaskOf(const models::ModelSpec& spec) {
  const models::LabelPlan& label = spec.features().label();
  if (!spec.features().group_column().empty()) {
    return models::Task::kRanking;
  }
  if (label.kind() == models::LabelPlan::CLASS) {
    return label.classes_size() > 2 ? models::Task::kMulticlass : models::Task::kBinary;
  }
  return models::Task::kRegression;
}

void RestoreLabelScale(const models::LabelPlan& label, std::vector<float>* labels) {
  if (label.kind() != models::LabelPlan::NUMBER || label.scale() == 0) {
    return;
  }
  for (float& value : *labels) {
    value = static_cast<float>(static_cast<double>(value) * label.scale() + label.mean());
  }
}

}  // namespace sluice::executor
