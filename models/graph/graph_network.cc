#include "models/graph/graph_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "models/graph/batch_tables_internal.h"
#include "models/graph/graph_inputs_internal.h"
#include "models/graph/graph_run_internal.h"
#include "models/model.pb.h"
#include "models/networks/initialize.h"
#include "models/networks/loss.h"

namespace sluice::models {
namespace {

DenseTensor::Group GroupOf(GraphParameter::Group group) {
  switch (group) {
    case GraphParameter::WIDE:
      return DenseTensor::Group::kWide;
    case GraphParameter::STATISTICS:
      return DenseTensor::Group::kStatistics;
    case GraphParameter::FROZEN:
      return DenseTensor::Group::kFrozen;
    default:
      return DenseTensor::Group::kDeep;
  }
}

class GraphNetwork final : public Network {
 public:
  GraphNetwork(std::unique_ptr<FeatureTransform> transform, Loss loss, uint64_t seed,
               std::unique_ptr<graph::GraphRun> run, graph::GraphInputs inputs)
      : transform_(std::move(transform)),
        loss_(std::move(loss)),
        seed_(seed),
        run_(std::move(run)),
        inputs_(std::move(inputs)),
        tables_(run_.get(), &inputs_) {}

  Status AddParameters();
  // Whether the operators fit together, for any number of rows, and fit the loss.
  Status CheckOutputs();

  const FeatureTransform& transform() const override { return *transform_; }
  const std::vector<DenseTensor>& dense() const override { return dense_; }
  const std::vector<EmbeddingTable>& tables() const override { return tables_.tables(); }
  size_t outputs() const override { return loss_.outputs(); }
  int64_t parameter_count() const override;
  size_t bytes_per_row() const override { return bytes_per_row_; }
  Status CheckRows(size_t rows) override {
    return run_->Plan(static_cast<int64_t>(rows), /*with_loss=*/true);
  }

  void CollectIds(const FeatureBatch& batch, ParameterView* view) override {
    tables_.CollectIds(batch, view);
  }
  LossSum Step(const FeatureBatch& batch, const ParameterView& view, uint64_t step,
               Gradient* gradient) override;
  LossSum Predict(const FeatureBatch& batch, const ParameterView& view,
                  std::vector<double>* predictions) override;

 private:
  // False: the operators cannot process that many rows, so nothing is known of these.
  bool Forward(const FeatureBatch& batch, const ParameterView& view, bool train, bool with_loss,
               uint64_t key);
  LossSum OwnLoss(const FeatureBatch& batch);
  void BeginAtOwnLoss(const FeatureBatch& batch, double weight);
  void PlaceGradient(const ParameterView& view, Gradient* gradient);
  void ClearUnreached(Gradient* gradient) const;

  // Constant after construction.
  std::unique_ptr<FeatureTransform> transform_;
  Loss loss_;
  uint64_t seed_;
  std::vector<DenseTensor> dense_;
  size_t bytes_per_row_ = 0;

  // For the current batch.
  std::unique_ptr<graph::GraphRun> run_;
  graph::GraphInputs inputs_;
  std::vector<graph::Tensor*> dense_values_;  // nullptr: not read by any node
  graph::BatchTables tables_;
  std::vector<float> unlearnt_;  // the output's gradient when nothing learns
  std::vector<float> shifted_;   // the output with its rows' offsets
};

Status GraphNetwork::AddParameters() {
  for (const GraphParameter& parameter : run_->graph().parameters()) {
    RETURN_IF_ERROR(
        CheckInitializer(parameter.initializer(), fmt::format("parameter '{}'", parameter.name())));
    DenseTensor tensor;
    tensor.name = parameter.name();
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    tensor.group = GroupOf(parameter.group());
    tensor.initializer = parameter.initializer();
    tensor.momentum = static_cast<float>(parameter.momentum());
    if (!(tensor.momentum >= 0 && tensor.momentum <= 1)) {
      return InvalidArgument(fmt::format("the momentum of '{}' is {}: between 0 and 1",
                                         parameter.name(), parameter.momentum()));
    }
    dense_.push_back(std::move(tensor));
    dense_values_.push_back(run_->Find(parameter.name()));
  }
  return tables_.AddAll();
}

Status GraphNetwork::CheckOutputs() {
  const auto outputs = static_cast<int64_t>(loss_.outputs());
  int64_t before = 0;
  for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{7}}) {
    if (Status status = run_->Plan(rows, /*with_loss=*/true); !status.ok()) {
      return std::move(status).Because(fmt::format("with a batch of {} rows", rows));
    }
    const graph::Tensor& output = run_->output();
    const bool single = outputs == 1 && output.shape == graph::Shape{rows};
    if (output.type != graph::ElementType::kFloat ||
        (!single && output.shape != graph::Shape{rows, outputs})) {
      return InvalidArgument(fmt::format("the model's output has {} of shape {} for {} rows",
                                         graph::TypeText(output.type),
                                         graph::ShapeText(output.shape), rows))
          .Hint(outputs == 1 ? "this label needs one number per row"
                             : fmt::format("this label needs {} numbers per row", outputs));
    }
    if (const graph::Tensor* loss = run_->loss()) {
      if (loss->type != graph::ElementType::kFloat || loss->shape != graph::Shape{rows}) {
        return InvalidArgument(fmt::format("the model's loss has {} of shape {} for {} rows",
                                           graph::TypeText(loss->type),
                                           graph::ShapeText(loss->shape), rows))
            .Hint("it is one number for each row: the mean over a batch is Sluice's");
      }
      if (!loss->trained) {
        return InvalidArgument("the model's loss has no gradient: nothing would be learnt");
      }
    }
    // Values and gradients, for 2 to 7 rows.
    constexpr size_t kCopies = 2;
    bytes_per_row_ = static_cast<size_t>(std::max<int64_t>(run_->elements() - before, 0)) *
                     kCopies * sizeof(float) / 5;
    before = run_->elements();
  }
  bytes_per_row_ += tables_.bytes_per_row();
  return OkStatus();
}

int64_t GraphNetwork::parameter_count() const {
  double count = 0;  // a plan from elsewhere may name more than an integer holds
  for (const DenseTensor& tensor : dense_) {
    count += static_cast<double>(tensor.size());
  }
  for (const EmbeddingTable& table : tables()) {
    count += static_cast<double>(table.rows) * table.dimension;
  }
  constexpr double kMax = 0x1p62;
  return static_cast<int64_t>(std::min(count, kMax));
}

bool GraphNetwork::Forward(const FeatureBatch& batch, const ParameterView& view, bool train,
                           bool with_loss, uint64_t key) {
  SLUICE_CHECK(batch.dense_width == transform_->dense_width() &&
                   batch.slots.size() == transform_->slots().size(),
               "a batch comes from the network's own transform");
  if (!run_->Plan(static_cast<int64_t>(batch.rows), with_loss).ok() ||
      run_->output().count() != batch.rows * outputs()) {
    return false;
  }
  inputs_.Feed(batch);
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (dense_values_[i] != nullptr) {
      dense_values_[i]->numbers =
          const_cast<float*>(view.dense[i]);  // parameters are never written
    }
  }
  tables_.Place(batch, view);
  run_->Forward(train, key);
  return true;
}

void GraphNetwork::PlaceGradient(const ParameterView& view, Gradient* gradient) {
  gradient->dense.resize(dense_.size());
  for (size_t i = 0; i < dense_.size(); ++i) {
    gradient->dense[i].resize(dense_[i].size());
    if (dense_values_[i] != nullptr) {
      dense_values_[i]->gradient = gradient->dense[i].data();
    }
  }
  tables_.PlaceGradient(view, gradient);
}

void GraphNetwork::ClearUnreached(Gradient* gradient) const {
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (dense_values_[i] == nullptr || !dense_values_[i]->written) {
      std::fill(gradient->dense[i].begin(), gradient->dense[i].end(), 0.0F);
    }
  }
  tables_.ClearUnreached(gradient);
}

LossSum GraphNetwork::Step(const FeatureBatch& batch, const ParameterView& view, uint64_t step,
                           Gradient* gradient) {
  PlaceGradient(view, gradient);
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  if (!Forward(batch, view, /*train=*/true, /*with_loss=*/true,
               HashInteger(HashInteger(seed_) + step))) {
    for (graph::Tensor* tensor : dense_values_) {
      if (tensor != nullptr) {
        tensor->written = false;
      }
    }
    tables_.ForgetGradient();
    ClearUnreached(gradient);
    return {kNaN, static_cast<double>(batch.rows)};
  }
  run_->PrepareBackward();
  if (run_->loss() != nullptr) {
    const LossSum sum = OwnLoss(batch);
    BeginAtOwnLoss(batch, sum.weight);
    run_->Backward();
    ClearUnreached(gradient);
    return sum;
  }
  graph::Tensor& output = run_->output();
  unlearnt_.resize(output.gradient == nullptr ? output.count() : 0);
  const float* numbers = output.numbers;
  if (!batch.offsets.empty()) {
    shifted_.assign(output.numbers, output.numbers + output.count());
    batch.AddOffsets(outputs(), shifted_.data());
    numbers = shifted_.data();
  }
  const LossSum sum =
      loss_.Compute(batch.rows, numbers, batch.labels.data(),
                    batch.weights.empty() ? nullptr : batch.weights.data(),
                    output.gradient == nullptr ? unlearnt_.data() : output.gradient);
  run_->Backward();
  ClearUnreached(gradient);
  return sum;
}

// The weighted sum of the graph's own loss of each row.
LossSum GraphNetwork::OwnLoss(const FeatureBatch& batch) {
  const graph::Tensor& losses = *run_->loss();
  LossSum sum;
  for (size_t r = 0; r < batch.rows; ++r) {
    const double weight = batch.weights.empty() ? 1.0 : static_cast<double>(batch.weights[r]);
    sum.loss += weight * static_cast<double>(losses.numbers[r]);
    sum.weight += weight;
  }
  return sum;
}

// The gradient of the mean by each row's loss.
void GraphNetwork::BeginAtOwnLoss(const FeatureBatch& batch, double weight) {
  const float share = weight > 0 ? static_cast<float>(1.0 / weight) : 0.0F;
  for (size_t r = 0; r < batch.rows; ++r) {
    run_->loss()->gradient[r] = batch.weights.empty() ? share : share * batch.weights[r];
  }
}

LossSum GraphNetwork::Predict(const FeatureBatch& batch, const ParameterView& view,
                              std::vector<double>* predictions) {
  const bool labelled = !batch.labels.empty();
  const bool known = Forward(batch, view, /*train=*/false, /*with_loss=*/labelled, 0);
  if (known) {
    const graph::Tensor& output = run_->output();
    shifted_.assign(output.numbers, output.numbers + output.count());
    batch.AddOffsets(outputs(), shifted_.data());
  } else {
    shifted_.assign(batch.rows * outputs(), std::numeric_limits<float>::quiet_NaN());
  }
  LossSum sum;
  if (labelled && known && run_->loss() != nullptr) {
    sum = OwnLoss(batch);
  } else if (labelled) {
    sum = loss_.Compute(batch.rows, shifted_.data(), batch.labels.data(),
                        batch.weights.empty() ? nullptr : batch.weights.data(), nullptr);
  }
  loss_.ToPredictions(batch.rows, shifted_.data(), predictions);
  return sum;
}

}  // namespace

Result<std::unique_ptr<Network>> MakeGraphNetwork(const ModelSpec& spec, const NetworkGraph& graph,
                                                  bool limits,
                                                  std::unique_ptr<FeatureTransform> transform,
                                                  Loss loss) {
  ASSIGN_OR_RETURN(
      std::unique_ptr<graph::GraphRun> run,
      graph::GraphRun::Make(graph, ActiveKernels(),
                            limits ? std::optional(graph::kMaxDenseBytes) : std::nullopt));
  ASSIGN_OR_RETURN(graph::GraphInputs inputs,
                   graph::GraphInputs::Make(spec, *transform, run.get()));
  auto network = std::make_unique<GraphNetwork>(std::move(transform), std::move(loss), spec.seed(),
                                                std::move(run), std::move(inputs));
  RETURN_IF_ERROR(network->AddParameters());
  RETURN_IF_ERROR(network->CheckOutputs());
  return std::unique_ptr<Network>(std::move(network));
}

}  // namespace sluice::models
