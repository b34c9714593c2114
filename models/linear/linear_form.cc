#include "models/linear/linear_form_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <memory>

#include "models/families/family_layer_settings.h"
#include "models/families/family_layers.h"
#include "models/kernels/kernels.h"
#include "models/linear_optimum.h"
#include "models/model.pb.h"
#include "models/networks/id_factors.h"

namespace sluice::models {
namespace {

bool HasOptimum(Loss::Kind kind) {
  return kind == Loss::Kind::kLogistic || kind == Loss::Kind::kSoftmax ||
         kind == Loss::Kind::kSquared;
}

// The slot of the feature that an input of the graph is.
Result<size_t> SlotOf(const ModelSpec& spec, const FeatureTransform& transform,
                      const NetworkGraph& graph, const std::string& input) {
  for (const GraphInput& own : graph.inputs()) {
    for (size_t s = 0; own.name() == input && s < transform.slots().size(); ++s) {
      const auto feature = static_cast<int>(transform.slots()[s].feature);
      if (spec.features().features(feature).name() == own.features(0)) {
        return s;
      }
    }
  }
  return Internal(fmt::format("no feature is '{}'", input));
}

}  // namespace

bool LinearOptimum::Finds(const ModelSpec& spec) {
  const Result<Loss> loss = Loss::Make(spec);
  return loss.ok() && HasOptimum(loss->kind());
}

Result<LinearShape> LinearShape::Of(const ModelSpec& spec) {
  ASSIGN_OR_RETURN(const Loss loss, Loss::Make(spec));
  ASSIGN_OR_RETURN(const auto transform,
                   FeatureTransform::Make(spec.features(), FeatureTransform::Target::kNetwork));
  if (!families::IsLinear(spec) || !HasOptimum(loss.kind())) {
    return Unimplemented(fmt::format("{} has no optimum that could be computed", spec.type()));
  }
  ASSIGN_OR_RETURN(const NetworkGraph graph,
                   families::GraphOfLayers(spec, *transform, loss.outputs()));
  LinearShape shape;
  ASSIGN_OR_RETURN(shape.combiner, families::WideCombiner(spec));
  shape.numbers = transform->dense_width();
  shape.kind = loss.kind();
  shape.outputs = loss.outputs();
  for (const GraphTable& table : graph.tables()) {
    LinearTable& own = shape.tables.emplace_back();
    own.rows = table.rows();
    for (int k = 0; k < table.inputs_size(); ++k) {
      ASSIGN_OR_RETURN(const size_t slot, SlotOf(spec, *transform, graph, table.inputs(k)));
      own.features.push_back({slot, table.first_rows(k)});
    }
  }
  return shape;
}

LinearForm::LinearForm(const LinearShape& shape) : shape_(shape), outputs_(shape.outputs) {
  bias_ = shape_.numbers * outputs_;
  size_ = bias_ + outputs_;
  table_values_.resize(shape_.tables.size());
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    tables_.push_back(size_);
    size_ += static_cast<size_t>(shape_.tables[t].rows) * outputs_;
  }
}

void LinearForm::Load(const std::vector<double>& weights) {
  const auto copy = [&weights](size_t from, size_t count, std::vector<float>* to) {
    to->resize(count);
    for (size_t i = 0; i < count; ++i) {
      (*to)[i] = static_cast<float>(weights[from + i]);
    }
  };
  copy(0, bias_, &kernel_);
  copy(bias_, outputs_, &bias_values_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    copy(tables_[t], static_cast<size_t>(shape_.tables[t].rows) * outputs_, &table_values_[t]);
  }
}

const std::vector<uint32_t>& LinearForm::PlacesOf(const IdSlot& slot,
                                                  const LinearFeature& feature) {
  places_.resize(slot.ids.size());
  std::transform(slot.ids.begin(), slot.ids.end(), places_.begin(),
                 [&](uint32_t id) { return static_cast<uint32_t>(feature.first_row) + id; });
  return places_;
}

// body(row of the batch, row of the table, factor) for each id of a feature.
template <typename Body>
void LinearForm::ForEachId(const FeatureBatch& batch, const LinearFeature& feature, Body body) {
  const IdSlot& slot = batch.slots[feature.slot];
  IdFactors(shape_.combiner, batch.rows, slot.ends, slot.weights, &factors_);
  const std::vector<uint32_t>& places = PlacesOf(slot, feature);
  for (size_t r = 0; r < batch.rows; ++r) {
    for (size_t i = slot.Begin(r); i < slot.End(r); ++i) {
      body(r, places[i], factors_.empty() ? 1.0F : factors_[i]);
    }
  }
}

// logits += the rows of the table that the feature's ids choose.
void LinearForm::AddFeature(const FeatureBatch& batch, const LinearFeature& feature,
                            const float* table, float* logits) {
  const IdSlot& slot = batch.slots[feature.slot];
  if (slot.ends.empty() && slot.weights.empty()) {
    ActiveKernels().gather_add_rows(table, outputs_, PlacesOf(slot, feature).data(), batch.rows,
                                    outputs_, logits, outputs_);
    return;
  }
  ForEachId(batch, feature, [&](size_t row, size_t place, float factor) {
    for (size_t o = 0; o < outputs_; ++o) {
      logits[row * outputs_ + o] += factor * table[place * outputs_ + o];
    }
  });
}

void LinearForm::AddFeatureTransposed(const FeatureBatch& batch, const LinearFeature& feature,
                                      const float* values, float* table) {
  const IdSlot& slot = batch.slots[feature.slot];
  if (slot.ends.empty() && slot.weights.empty()) {
    ActiveKernels().scatter_add_rows(values, outputs_, PlacesOf(slot, feature).data(), batch.rows,
                                     outputs_, table, outputs_);
    return;
  }
  ForEachId(batch, feature, [&](size_t row, size_t place, float factor) {
    for (size_t o = 0; o < outputs_; ++o) {
      table[place * outputs_ + o] += factor * values[row * outputs_ + o];
    }
  });
}

void LinearForm::Multiply(const FeatureBatch& batch, float* logits) {
  const Kernels& kernels = ActiveKernels();
  const size_t width = shape_.numbers;
  if (width == 0) {
    for (size_t r = 0; r < batch.rows; ++r) {
      std::copy_n(bias_values_.data(), outputs_, logits + r * outputs_);
    }
  } else {
    const float* input = batch.dense.data();
    if (outputs_ == 1) {
      kernels.row_dots(batch.rows, width, input, batch.dense_width, kernel_.data(),
                       bias_values_.front(), logits);
    } else {
      kernels.gemm_bias({batch.rows, outputs_, width, batch.dense_width, 1, outputs_, outputs_},
                        input, kernel_.data(), bias_values_.data(), logits);
    }
  }
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    for (const LinearFeature& feature : shape_.tables[t].features) {
      AddFeature(batch, feature, table_values_[t].data(), logits);
    }
  }
}

void LinearForm::AddTransposed(const FeatureBatch& batch, const float* values,
                               std::vector<double>* sums) {
  if (batch.rows == 0) {
    return;
  }
  const Kernels& kernels = ActiveKernels();
  const auto add = [&](size_t place) {
    for (size_t i = 0; i < sums_.size(); ++i) {
      (*sums)[place + i] += static_cast<double>(sums_[i]);
    }
  };
  if (const size_t width = shape_.numbers; width > 0) {
    sums_.assign(width * outputs_, 0);
    kernels.gemm({width, outputs_, batch.rows, 1, batch.dense_width, outputs_, outputs_},
                 batch.dense.data(), values, sums_.data());
    add(0);
  }
  sums_.assign(outputs_, 0);
  kernels.column_sums(batch.rows, outputs_, values, outputs_, sums_.data());
  add(bias_);
  for (size_t t = 0; t < shape_.tables.size(); ++t) {
    sums_.assign(static_cast<size_t>(shape_.tables[t].rows) * outputs_, 0);
    for (const LinearFeature& feature : shape_.tables[t].features) {
      AddFeatureTransposed(batch, feature, values, sums_.data());
    }
    add(tables_[t]);
  }
}

void LinearForm::AddSquaresTransposed(const FeatureBatch& batch, const float* values,
                                      std::vector<double>* sums) {
  FeatureBatch squared;
  squared.rows = batch.rows;
  squared.dense_width = batch.dense_width;
  squares_.resize(batch.dense.size());
  std::transform(batch.dense.begin(), batch.dense.end(), squares_.begin(),
                 [](float cell) { return cell * cell; });
  squared.dense.swap(squares_);
  squared.slots = batch.slots;
  for (IdSlot& slot : squared.slots) {
    for (float& weight : slot.weights) {
      weight *= weight;
    }
  }
  AddTransposed(squared, values, sums);
  squared.dense.swap(squares_);
}

NetworkWeights LinearForm::Export(const std::vector<double>& weights) const {
  NetworkWeights exported;
  const auto tensor = [&](size_t from, size_t count) {
    std::vector<float>& to = exported.dense.emplace_back(count);
    std::transform(weights.begin() + static_cast<std::ptrdiff_t>(from),
                   weights.begin() + static_cast<std::ptrdiff_t>(from + count), to.begin(),
                   [](double weight) { return static_cast<float>(weight); });
  };
  if (bias_ > 0) {
    tensor(0, bias_);
  }
  tensor(bias_, outputs_);
  for (size_t t = 0; t < tables_.size(); ++t) {
    NetworkWeights::Table& table = exported.tables.emplace_back();
    for (int64_t id = 0; id < shape_.tables[t].rows; ++id) {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(
                                               tables_[t] + static_cast<size_t>(id) * outputs_);
      const auto end = begin + static_cast<std::ptrdiff_t>(outputs_);
      if (std::all_of(begin, end, [](double weight) { return weight == 0; })) {
        continue;  // does not occur in any row
      }
      table.ids.push_back(id);
      std::transform(begin, end, std::back_inserter(table.values),
                     [](double weight) { return static_cast<float>(weight); });
    }
  }
  return exported;
}

}  // namespace sluice::models
