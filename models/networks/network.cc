#include <algorithm>
#include <cmath>
#include <utility>

#include "models/kernels/kernels.h"
#include "models/model.h"
#include "models/model.pb.h"
#include "models/networks/loss.h"
#include "models/networks/network_internal.h"
#include "models/networks/network_of_parts.h"

namespace sluice::models {
namespace {

// Limit for all tables together: 256 MiB. Beyond it, a batch's ids are hashed.
constexpr int64_t kMaxStampsTogether = 1 << 25;

class NetworkOfParts final : public Network {
 public:
  NetworkOfParts(std::unique_ptr<FeatureTransform> transform, NetworkShape shape, Loss loss,
                 uint64_t seed)
      : transform_(std::move(transform)),
        shape_(std::move(shape)),
        loss_(std::move(loss)),
        seed_(seed) {
    int64_t stamps = kMaxStampsTogether;
    for (const EmbeddingTable& table : shape_.tables) {
      stamps -= numbering_.emplace_back(table.rows, stamps).stamps();
    }
    const size_t wide_tensors =
        shape_.wide ? (shape_.wide_dense.width > 0 ? size_t{2} : size_t{1}) : 0;
    wide_bias_ = wide_tensors - 1;
    if (shape_.deep) {
      layers_.emplace_back(shape_, loss_.outputs(), wide_tensors);
    }
  }

  const FeatureTransform& transform() const override { return *transform_; }
  const std::vector<DenseTensor>& dense() const override { return shape_.dense; }
  const std::vector<EmbeddingTable>& tables() const override { return shape_.tables; }
  size_t outputs() const override { return loss_.outputs(); }
  int64_t parameter_count() const override;
  size_t bytes_per_row() const override;

  void CollectIds(const FeatureBatch& batch, ParameterView* view) override;
  LossSum Step(const FeatureBatch& batch, const ParameterView& view, uint64_t step,
               Gradient* gradient) override;
  LossSum Predict(const FeatureBatch& batch, const ParameterView& view,
                  std::vector<float>* predictions) override;

 private:
  // Columns of the batch as a separate matrix; uses the batch's memory directly if possible.
  const float* WideInput(const FeatureBatch& batch, size_t* stride);
  void ForwardWide(const FeatureBatch& batch, const ParameterView& view);
  void BoundInputs(size_t rows, float* input) const;
  void ForwardDeep(const FeatureBatch& batch, const ParameterView& view, bool train, uint64_t step);
  void Forward(const FeatureBatch& batch, const ParameterView& view, bool train, uint64_t step);
  void BackwardWide(const FeatureBatch& batch, const ParameterView& view, Gradient* gradient);
  void BackwardDeep(const FeatureBatch& batch, const ParameterView& view, Gradient* gradient);
  void ShapeGradient(const ParameterView& view, Gradient* gradient) const;

  // Constant after construction.
  std::unique_ptr<FeatureTransform> transform_;
  NetworkShape shape_;
  Loss loss_;
  uint64_t seed_;
  size_t wide_bias_ = 0;  // position among the tensors; the wide kernel, if any, comes right before

  // Scratch for the current batch.
  std::vector<IdNumbering> numbering_;  // one per table
  std::vector<LayerStack> layers_;      // one when there is a deep part
  TableColumns columns_;
  std::vector<float> wide_input_;
  std::vector<float> logits_;
  std::vector<float> logits_gradient_;
};

int64_t NetworkOfParts::parameter_count() const {
  // As doubles: a stored plan may contain numbers that overflow an integer.
  double count = 0;
  for (const DenseTensor& tensor : shape_.dense) {
    count += static_cast<double>(tensor.size());
  }
  for (const EmbeddingTable& table : shape_.tables) {
    count += static_cast<double>(table.rows) * table.dimension;
  }
  constexpr double kMax = 0x1p62;
  return static_cast<int64_t>(std::min(count, kMax));
}

size_t NetworkOfParts::bytes_per_row() const {
  size_t floats = transform_->dense_width() + shape_.wide_dense.width + shape_.input_width() +
                  4 * loss_.outputs();
  for (const size_t width : shape_.hidden_units) {
    floats += 4 * width;  // values and gradient, and the same again for dropout
  }
  for (size_t t = 0; t < shape_.tables.size(); ++t) {  // each id may touch a different row
    floats += shape_.uses[t].slots.size() * (shape_.tables[t].dimension + 4);
  }
  return floats * sizeof(float);
}

void NetworkOfParts::CollectIds(const FeatureBatch& batch, ParameterView* view) {
  view->tables.resize(shape_.tables.size());
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    RowSet& set = view->tables[t];
    size_t occurrences = 0;
    for (const SlotUse& use : shape_.uses[t].slots) {
      occurrences += batch.slots[use.slot].ids.size();
    }
    set.ids.clear();
    set.positions.resize(occurrences);
    numbering_[t].Start(occurrences);
    uint32_t* positions = set.positions.data();
    for (const SlotUse& use : shape_.uses[t].slots) {
      const std::vector<uint32_t>& ids = batch.slots[use.slot].ids;
      numbering_[t].Number(ids, use, &set.ids, positions);
      positions += ids.size();
    }
  }
}

const float* NetworkOfParts::WideInput(const FeatureBatch& batch, size_t* stride) {
  const DenseInput& input = shape_.wide_dense;
  if (input.runs.size() == 1) {
    *stride = batch.dense_width;
    return batch.dense.data() + input.runs.front().from;
  }
  *stride = input.width;
  wide_input_.resize(batch.rows * input.width);
  for (size_t r = 0; r < batch.rows; ++r) {
    const float* from = batch.dense.data() + r * batch.dense_width;
    float* to = wide_input_.data() + r * input.width;
    for (const DenseRun& run : input.runs) {
      std::copy_n(from + run.from, run.width, to + run.to);
    }
  }
  return wide_input_.data();
}

void NetworkOfParts::ForwardWide(const FeatureBatch& batch, const ParameterView& view) {
  const Kernels& kernels = ActiveKernels();
  const size_t n = outputs();
  const float* bias = view.dense[wide_bias_];
  if (shape_.wide_dense.width > 0) {
    size_t stride = 0;
    const float* input = WideInput(batch, &stride);
    const float* kernel = view.dense[wide_bias_ - 1];
    if (n == 1) {
      kernels.row_dots(batch.rows, shape_.wide_dense.width, input, stride, kernel, *bias,
                       logits_.data());
    } else {
      kernels.gemm_bias({batch.rows, n, shape_.wide_dense.width, stride, 1, n, n}, input, kernel,
                        bias, logits_.data());
    }
  } else {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::copy_n(bias, n, logits_.data() + r * n);
    }
  }
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    if (shape_.uses[t].kind == TableUse::Kind::kWide) {
      columns_.Forward(shape_.uses[t], batch, view.tables[t], n, logits_.data(), n);
    }
  }
}

void NetworkOfParts::BoundInputs(size_t rows, float* input) const {
  const float factor = 1.0F / (shape_.input_bound * shape_.input_bound);
  for (size_t r = 0; r < rows; ++r) {
    float* row = input + r * shape_.input_width() + shape_.embedding_width;
    for (size_t i = 0; i < shape_.deep_dense.width; ++i) {
      row[i] = row[i] / std::sqrt(1.0F + row[i] * row[i] * factor);
    }
  }
}

void NetworkOfParts::ForwardDeep(const FeatureBatch& batch, const ParameterView& view, bool train,
                                 uint64_t step) {
  LayerStack& layers = layers_.front();
  const size_t width = shape_.input_width();
  float* input = layers.Input(batch.rows);
  for (const DenseRun& run : shape_.deep_dense.runs) {
    const float* from = batch.dense.data() + run.from;
    float* to = input + shape_.embedding_width + run.to;
    for (size_t r = 0; r < batch.rows; ++r) {
      for (size_t i = 0; i < run.width; ++i) {
        to[i] = from[i];
      }
      from += batch.dense_width;
      to += width;
    }
  }
  if (shape_.input_bound > 0) {
    BoundInputs(batch.rows, input);
  }
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    if (shape_.uses[t].kind == TableUse::Kind::kEmbedding) {
      columns_.Forward(shape_.uses[t], batch, view.tables[t], shape_.tables[t].dimension, input,
                       width);
    }
  }
  float* first = layers.FirstLayer(batch.rows, view);
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    if (shape_.uses[t].kind == TableUse::Kind::kIndicator) {
      columns_.Forward(shape_.uses[t], batch, view.tables[t], layers.first_width(), first,
                       layers.first_width());
    }
  }
  layers.Forward(batch.rows, view, train, seed_, step, logits_.data());
}

void NetworkOfParts::Forward(const FeatureBatch& batch, const ParameterView& view, bool train,
                             uint64_t step) {
  SLUICE_CHECK(batch.dense_width == transform_->dense_width() &&
                   batch.slots.size() == transform_->slots().size(),
               "a batch comes from the network's own transform");
  logits_.assign(batch.rows * outputs(), 0.0f);
  if (shape_.wide) {
    ForwardWide(batch, view);
  }
  if (shape_.deep) {
    ForwardDeep(batch, view, train, step);
  }
  batch.AddOffsets(outputs(), logits_.data());
}

void NetworkOfParts::ShapeGradient(const ParameterView& view, Gradient* gradient) const {
  gradient->dense.resize(shape_.dense.size());
  for (size_t i = 0; i < shape_.dense.size(); ++i) {
    gradient->dense[i].resize(shape_.dense[i].size());
  }
  gradient->tables.resize(shape_.tables.size());
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    gradient->tables[t].assign(view.tables[t].ids.size() * shape_.tables[t].dimension, 0.0f);
  }
}

void NetworkOfParts::BackwardWide(const FeatureBatch& batch, const ParameterView& view,
                                  Gradient* gradient) {
  const Kernels& kernels = ActiveKernels();
  const size_t n = outputs();
  const float* from = logits_gradient_.data();
  kernels.column_sums(batch.rows, n, from, n, gradient->dense[wide_bias_].data());
  if (const size_t width = shape_.wide_dense.width; width > 0) {
    size_t stride = 0;
    const float* input = WideInput(batch, &stride);
    float* to = gradient->dense[wide_bias_ - 1].data();
    if (n == 1) {
      kernels.gemm({1, width, batch.rows, batch.rows, 1, stride, width}, from, input, to);
    } else {
      kernels.gemm({width, n, batch.rows, 1, stride, n, n}, input, from, to);
    }
  }
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    if (shape_.uses[t].kind == TableUse::Kind::kWide) {
      columns_.Backward(shape_.uses[t], batch, view.tables[t], n, from, n,
                        gradient->tables[t].data());
    }
  }
}

void NetworkOfParts::BackwardDeep(const FeatureBatch& batch, const ParameterView& view,
                                  Gradient* gradient) {
  LayerStack& layers = layers_.front();
  layers.Backward(batch.rows, view, logits_gradient_.data(), gradient);
  for (size_t t = 0; t < shape_.uses.size(); ++t) {
    const TableUse& use = shape_.uses[t];
    float* to = gradient->tables[t].data();
    if (use.kind == TableUse::Kind::kEmbedding) {
      columns_.Backward(use, batch, view.tables[t], shape_.tables[t].dimension,
                        layers.InputGradient(), shape_.embedding_width, to);
    } else if (use.kind == TableUse::Kind::kIndicator) {
      columns_.Backward(use, batch, view.tables[t], layers.first_width(), layers.FirstGradient(),
                        layers.first_width(), to);
    }
  }
}

LossSum NetworkOfParts::Step(const FeatureBatch& batch, const ParameterView& view, uint64_t step,
                             Gradient* gradient) {
  ShapeGradient(view, gradient);
  Forward(batch, view, true, step);
  logits_gradient_.resize(logits_.size());
  const float* weights = batch.weights.empty() ? nullptr : batch.weights.data();
  const LossSum sum = loss_.Compute(batch.rows, logits_.data(), batch.labels.data(), weights,
                                    logits_gradient_.data());
  if (shape_.wide) {
    BackwardWide(batch, view, gradient);
  }
  if (shape_.deep) {
    BackwardDeep(batch, view, gradient);
  }
  return sum;
}

LossSum NetworkOfParts::Predict(const FeatureBatch& batch, const ParameterView& view,
                                std::vector<float>* predictions) {
  Forward(batch, view, false, 0);
  LossSum sum;
  if (!batch.labels.empty()) {
    const float* weights = batch.weights.empty() ? nullptr : batch.weights.data();
    sum = loss_.Compute(batch.rows, logits_.data(), batch.labels.data(), weights, nullptr);
  }
  predictions->assign(logits_.begin(), logits_.end());
  loss_.ToPredictions(batch.rows, predictions->data());
  return sum;
}

}  // namespace

Result<std::unique_ptr<Network>> MakeNetworkOfParts(const ModelSpec& spec,
                                                    std::unique_ptr<FeatureTransform> transform,
                                                    Loss loss) {
  ASSIGN_OR_RETURN(NetworkShape shape, ShapeOf(spec, *transform, loss.outputs()));
  return std::unique_ptr<Network>(std::make_unique<NetworkOfParts>(
      std::move(transform), std::move(shape), std::move(loss), spec.seed()));
}

}  // namespace sluice::models
