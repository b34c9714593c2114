#include "executor/scoring/scorer.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/mutex.h"
#include "catalog/data_source.h"
#include "executor/scoring/blend_scorer.h"
#include "executor/scoring/dataset_scan.h"
#include "models/blend/blend.h"
#include "models/features/label_quantiles.h"
#include "models/metrics/calibration.h"
#include "models/model.h"
#include "models/registry/registry.h"
#include "models/trees/gradient_boosting.h"
#include "planner/plan.pb.h"
#include "planner/result_columns.h"
#include "planner/stored_plan.h"

namespace sluice::executor {
namespace {

// Memory for one batch of rows on its way through a model.
constexpr size_t kBatchBytes = size_t{64} << 20;

// Row positions in one embedding table by id. Small tables that are mostly filled are indexed
// directly. The sizes of table and weights come from the stored model.
class TableIndex {
 public:
  TableIndex(const models::NetworkWeights::Table& table, int64_t rows) {
    constexpr int64_t kDirectRows = int64_t{1} << 22U;  // 32 MiB of positions
    constexpr int64_t kRowsPerWeight = 16;
    const int64_t sparse = kRowsPerWeight * (static_cast<int64_t>(table.ids.size()) + 4);
    if (rows <= std::min(kDirectRows, sparse)) {
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

// Weights that several scorers read.
struct NetworkModel {
  models::ModelSpec spec;
  models::NetworkWeights weights;
  std::vector<TableIndex> indexes;  // by table
};

class NetworkScorer final : public Scorer {
 public:
  static Result<std::unique_ptr<Scorer>> Make(const models::ModelSpec& spec,
                                              std::string_view weights) {
    auto model = std::make_shared<NetworkModel>();
    model->spec = spec;
    ASSIGN_OR_RETURN(auto network, models::Network::Make(spec));
    ASSIGN_OR_RETURN(model->weights, models::LoadWeights(weights));
    RETURN_IF_ERROR(models::CheckShape(model->weights, *network));
    for (size_t t = 0; t < model->weights.tables.size(); ++t) {
      model->indexes.emplace_back(model->weights.tables[t], network->tables()[t].rows);
    }
    return std::unique_ptr<Scorer>(new NetworkScorer(std::move(model), std::move(network)));
  }

  Result<std::unique_ptr<Scorer>> Another() const override {
    ASSIGN_OR_RETURN(auto network, models::Network::Make(model_->spec));
    return std::unique_ptr<Scorer>(new NetworkScorer(model_, std::move(network)));
  }

  const models::FeatureTransform& transform() const override { return network_->transform(); }
  size_t outputs() const override { return network_->outputs(); }
  size_t bytes_per_row() const override { return network_->bytes_per_row(); }

  Status Score(const models::FeatureBatch& batch, std::vector<double>* scores) override {
    network_->CollectIds(batch, &view_);
    for (size_t t = 0; t < view_.tables.size(); ++t) {
      models::RowSet& rows = view_.tables[t];
      const size_t dimension = network_->tables()[t].dimension;
      rows.values.resize(rows.ids.size() * dimension);
      for (size_t i = 0; i < rows.ids.size(); ++i) {
        const int64_t found = model_->indexes[t].Find(rows.ids[i]);
        float* to = rows.values.data() + i * dimension;
        if (found < 0) {  // not seen in training: contributes nothing
          std::fill_n(to, dimension, 0.0F);
        } else {
          const std::vector<float>& values = model_->weights.tables[t].values;
          std::copy_n(values.data() + static_cast<size_t>(found) * dimension, dimension, to);
        }
      }
    }
    const models::LossSum loss = network_->Predict(batch, view_, scores);
    if (own_loss_) {
      own_loss_ = loss;
    }
    return OkStatus();
  }
  std::optional<models::LossSum> own_loss() const override { return own_loss_; }

  Result<std::vector<Importance>> FeatureImportance() const override {
    return Unimplemented("feature importance of a network is not built yet")
        .Hint("TO EXPLAIN works for xgboost models");
  }

 private:
  NetworkScorer(std::shared_ptr<const NetworkModel> model, std::unique_ptr<models::Network> network)
      : model_(std::move(model)), network_(std::move(network)) {
    for (const std::vector<float>& tensor : model_->weights.dense) {
      view_.dense.push_back(tensor.data());
    }
    view_.tables.resize(model_->weights.tables.size());
    if (models::HasOwnLoss(model_->spec)) {
      own_loss_.emplace();
    }
  }

  const std::shared_ptr<const NetworkModel> model_;
  const std::unique_ptr<models::Network> network_;
  models::ParameterView view_;
  std::optional<models::LossSum> own_loss_;  // of the last rows; nullopt: the model has none
};

// Scorers of the same trees take turns: libxgboost scores a batch on all processors.
class TreeScorer final : public Scorer {
 public:
  static Result<std::unique_ptr<Scorer>> Make(const models::ModelSpec& spec,
                                              std::string_view weights) {
    auto model = std::make_shared<TreeModel>();
    ASSIGN_OR_RETURN(model->trees, models::GradientBoosting::Make(spec));
    RETURN_IF_ERROR(model->trees->Load(weights));
    return std::unique_ptr<Scorer>(new TreeScorer(std::move(model)));
  }
  Result<std::unique_ptr<Scorer>> Another() const override {
    return std::unique_ptr<Scorer>(new TreeScorer(model_));
  }
  const models::FeatureTransform& transform() const override { return model_->trees->transform(); }
  size_t outputs() const override { return model_->trees->outputs(); }
  size_t bytes_per_row() const override { return model_->trees->bytes_per_row(); }
  Status Score(const models::FeatureBatch& batch, std::vector<double>* scores) override {
    const MutexLock turn(model_->mutex);
    return model_->trees->Predict(batch, scores);
  }
  Result<std::vector<Importance>> FeatureImportance() const override {
    const MutexLock turn(model_->mutex);
    ASSIGN_OR_RETURN(const auto importance, model_->trees->FeatureImportance());
    std::vector<Importance> rows;
    rows.reserve(importance.size());
    for (const auto& feature : importance) {
      rows.push_back({feature.feature, feature.splits, feature.gain});
    }
    return rows;
  }

 private:
  struct TreeModel {
    Mutex mutex;  // held while the trees score; their sizes and transform never change
    std::unique_ptr<models::GradientBoosting> trees;
  };
  explicit TreeScorer(std::shared_ptr<TreeModel> model) : model_(std::move(model)) {}

  const std::shared_ptr<TreeModel> model_;
};

// Applies a calibration to a model's probabilities.
class CalibratedScorer final : public Scorer {
 public:
  CalibratedScorer(std::unique_ptr<Scorer> scorer, const models::Calibration& calibration)
      : scorer_(std::move(scorer)), calibration_(calibration) {}
  Result<std::unique_ptr<Scorer>> Another() const override {
    ASSIGN_OR_RETURN(auto scorer, scorer_->Another());
    return std::unique_ptr<Scorer>(
        std::make_unique<CalibratedScorer>(std::move(scorer), calibration_));
  }

  const models::FeatureTransform& transform() const override { return scorer_->transform(); }
  size_t outputs() const override { return scorer_->outputs(); }
  size_t bytes_per_row() const override { return scorer_->bytes_per_row(); }
  Status Score(const models::FeatureBatch& batch, std::vector<double>* scores) override {
    RETURN_IF_ERROR(scorer_->Score(batch, scores));
    models::Calibrate(calibration_, scorer_->outputs(), *scores);
    return OkStatus();
  }
  Result<std::vector<Importance>> FeatureImportance() const override {
    return scorer_->FeatureImportance();
  }

 private:
  const std::unique_ptr<Scorer> scorer_;
  const models::Calibration calibration_;
};

void RenameLabel(const std::string& label, models::ModelSpec* spec) {
  spec->mutable_features()->mutable_label()->set_column(label);
  for (models::BlendMember& member : *spec->mutable_members()) {
    RenameLabel(label, member.mutable_model());
  }
}

// Metrics and predictions depend on the label, so the model's outputs must match it.
Status CheckOutputs(const models::ModelSpec& spec, size_t outputs) {
  const models::LabelPlan& label = spec.features().label();
  size_t wanted = 1;
  if (models::TaskOf(spec) == models::Task::kMulticlass) {
    wanted = static_cast<size_t>(label.classes_size());
  } else if (models::TaskOf(spec) == models::Task::kQuantiles) {
    wanted = models::LabelQuantiles(spec).size();
  } else if (label.kind() == models::LabelPlan::VECTOR) {
    wanted = label.width();
  }
  if (outputs == wanted) {
    return OkStatus();
  }
  return FailedPrecondition(fmt::format("the stored model answers with {} numbers per row, its "
                                        "label '{}' needs {}",
                                        outputs, label.column(), wanted))
      .Hint("train the model again");
}

// Adds the plan's calibration, if it has one. An error if the outputs do not fit the plan.
Result<std::unique_ptr<Scorer>> Calibrated(const models::ModelSpec& spec,
                                           std::unique_ptr<Scorer> scorer) {
  RETURN_IF_ERROR(CheckOutputs(spec, scorer->outputs()));
  RETURN_IF_ERROR(models::CheckCalibration(spec.calibration(), scorer->outputs()));
  if (spec.calibration().curves_size() == 0 ||
      spec.features().label().kind() != models::LabelPlan::CLASS) {
    return scorer;
  }
  return std::unique_ptr<Scorer>(
      std::make_unique<CalibratedScorer>(std::move(scorer), spec.calibration()));
}

}  // namespace

Result<std::unique_ptr<Scorer>> Scorer::Make(const models::ModelSpec& spec,
                                             std::string_view weights) {
  if (spec.type() == models::kBlendType) {
    ASSIGN_OR_RETURN(auto blend, MakeBlendScorer(spec, weights));
    return Calibrated(spec, std::move(blend));
  }
  const models::ModelType* type = models::FindModelType(spec.type());
  if (type == nullptr && !spec.has_graph()) {  // a graph needs no type any more
    return FailedPrecondition(fmt::format("it is of the unknown type '{:.40}'", spec.type()));
  }
  ASSIGN_OR_RETURN(auto scorer, type != nullptr && type->family == models::ModelFamily::kTrees
                                    ? TreeScorer::Make(spec, weights)
                                    : NetworkScorer::Make(spec, weights));
  return Calibrated(spec, std::move(scorer));
}

size_t Scorer::rows_per_batch() const {
  return std::clamp<size_t>(kBatchBytes / std::max<size_t>(bytes_per_row(), 1), 1,
                            DatasetScan::kRowsPerBatch);
}

Result<std::unique_ptr<Scorer>> Scorer::Load(catalog::ModelStore& models,
                                             const catalog::ModelVersion& version,
                                             int64_t memory_bytes, const std::string& label) {
  ASSIGN_OR_RETURN(plan::TrainPlan plan, planner::ReadStoredPlan(version.plan));
  if (!label.empty()) {
    RenameLabel(label, plan.mutable_model());
  }
  // Only for training: rows are evaluated as they are.
  plan.mutable_model()->mutable_features()->mutable_label()->clear_class_weights();
  // The stored bytes and their decoded forms.
  constexpr int64_t kCopies = 3;
  if (version.weights_bytes > memory_bytes / kCopies) {
    return ResourceExhausted(
               fmt::format("model '{}:{}' has weights of {} MiB, and the memory limit "
                           "is {} MiB",
                           version.name, version.version, version.weights_bytes >> 20,
                           memory_bytes >> 20))
        .SqlState("53200")
        .Hint("start Sluice with a larger --memory-limit");
  }
  ASSIGN_OR_RETURN(const std::string weights, models.LoadWeights(version));
  Result<std::unique_ptr<Scorer>> scorer = Make(plan.model(), weights);
  if (!scorer.ok()) {
    return scorer.status().Because(
        fmt::format("loading model '{}:{}'", version.name, version.version));
  }
  return scorer;
}

}  // namespace sluice::executor
