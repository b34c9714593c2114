#include "models/graph/graph_inputs_internal.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/model.pb.h"

namespace sluice::models::graph {
namespace {

const std::string& FeatureName(const ModelSpec& spec, size_t feature) {
  return spec.features().features(static_cast<int>(feature)).name();
}

Status NoFeature(const ModelSpec& spec, const std::string& name, const std::string& input,
                 std::string_view kind) {
  std::vector<std::string> names;
  for (const Feature& feature : spec.features().features()) {
    if (feature.name() == name) {
      return InvalidArgument(
          fmt::format("the model reads feature '{}' as {}, which it is not", name, kind));
    }
    names.push_back(feature.name());
  }
  Status status = ColumnNotFound(
      name == input
          ? fmt::format("the model reads a feature '{}', which the rows do not have", name)
          : fmt::format("input '{}' of the model is feature '{}', which the rows do not "
                        "have",
                        input, name));
  if (const auto near = NearestName(name, names)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return status;
}

Status CheckLabel(const LabelPlan& label, const GraphInput& input) {
  const bool classes = label.kind() == LabelPlan::CLASS;
  const uint32_t width = label.kind() == LabelPlan::VECTOR ? label.width() : 0;
  if ((input.kind() == GraphInput::CLASS && !classes) ||
      (input.kind() == GraphInput::LABEL && input.width() != width)) {
    return InvalidArgument(
        fmt::format("the loss's '{}' is not what label '{}' is", input.name(), label.column()));
  }
  return OkStatus();
}

}  // namespace

Result<GraphInputs> GraphInputs::Make(const ModelSpec& spec, const FeatureTransform& transform,
                                      GraphRun* run) {
  GraphInputs inputs(transform, run);
  inputs.NameFeatures(spec);
  for (const GraphInput& graph : run->graph().inputs()) {
    Input& input = inputs.inputs_.emplace_back();
    input.graph = &graph;
    if (graph.kind() == GraphInput::IDS || graph.kind() == GraphInput::BAG) {
      inputs.ids_.emplace(graph.name(), inputs.inputs_.size() - 1);
    }
    if (graph.kind() == GraphInput::LABEL || graph.kind() == GraphInput::CLASS) {
      RETURN_IF_ERROR(CheckLabel(spec.features().label(), graph));
      continue;
    }
    RETURN_IF_ERROR(graph.kind() == GraphInput::NUMBERS ? inputs.AddNumbers(spec, &input)
                                                        : inputs.AddSlot(spec, &input));
  }
  return inputs;
}

void GraphInputs::NameFeatures(const ModelSpec& spec) {
  for (size_t c = 0; c < transform_->dense_columns().size(); ++c) {
    columns_.emplace(FeatureName(spec, transform_->dense_columns()[c].feature), c);
  }
  for (size_t s = 0; s < transform_->slots().size(); ++s) {
    slots_.emplace(FeatureName(spec, transform_->slots()[s].feature), s);
  }
}

Status GraphInputs::AddNumbers(const ModelSpec& spec, Input* input) {
  const GraphInput& graph = *input->graph;
  size_t width = 0;
  const auto add = [&](const DenseColumn& column) {
    if (!input->runs.empty() &&
        input->runs.back().from + input->runs.back().width == column.offset) {
      input->runs.back().width += column.width;
    } else {
      input->runs.push_back({column.offset, width, column.width});
    }
    width += column.width;
  };
  for (const DenseColumn& column : transform_->dense_columns()) {
    if (graph.features().empty()) {
      add(column);
    }
  }
  for (const std::string& name : graph.features()) {
    const auto column = columns_.find(name);
    if (column == columns_.end()) {
      return NoFeature(spec, name, graph.name(), "numbers");
    }
    add(transform_->dense_columns()[column->second]);
  }
  if (width != graph.width()) {
    return InvalidArgument(fmt::format("input '{}' has {} numbers per row, its features have {}",
                                       graph.name(), graph.width(), width));
  }
  return OkStatus();
}

Status GraphInputs::AddSlot(const ModelSpec& spec, Input* input) {
  const GraphInput& graph = *input->graph;
  if (graph.features_size() != 1) {
    return InvalidArgument(fmt::format("input '{}' has the ids of {} features: of one",
                                       graph.name(), graph.features_size()));
  }
  const auto slot = slots_.find(graph.features(0));
  if (slot == slots_.end()) {
    return NoFeature(spec, graph.features(0), graph.name(), "a category");
  }
  input->slot = slot->second;
  return OkStatus();
}

std::optional<size_t> GraphInputs::Find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const SlotColumn& GraphInputs::SlotOf(size_t input) const {
  return transform_->slots()[inputs_[input].slot];
}

// The first ids of a row; 0 for those that it does not have.
void GraphInputs::Pad(const IdSlot& slot, size_t rows, Input* input) {
  const size_t length = std::max<size_t>(input->graph->length(), 1);
  input->padded.assign(rows * length, 0);
  for (size_t r = 0; r < rows; ++r) {
    const size_t begin = slot.Begin(r);
    const size_t count = std::min(length, slot.End(r) - begin);
    std::copy_n(slot.ids.data() + begin, count, input->padded.data() + r * length);
  }
}

const std::vector<uint32_t>& GraphInputs::IdsOf(size_t input, const FeatureBatch& batch) {
  Input& own = inputs_[input];
  const IdSlot& slot = batch.slots[own.slot];
  const bool as_they_are = slot.ends.empty() && own.graph->length() <= 1;
  if (own.graph->kind() == GraphInput::BAG || as_they_are) {
    return slot.ids;
  }
  Pad(slot, batch.rows, &own);
  return own.padded;
}

RowUse GraphInputs::UseOf(size_t input, const FeatureBatch& batch,
                          std::span<const uint32_t> positions) const {
  const IdSlot& slot = batch.slots[inputs_[input].slot];
  return {positions, slot.ends, slot.weights};
}

void GraphInputs::Feed(const FeatureBatch& batch) {
  for (Input& input : inputs_) {
    Tensor* tensor = run_->Find(input.graph->name());
    const bool of_label =
        input.graph->kind() == GraphInput::LABEL || input.graph->kind() == GraphInput::CLASS;
    if (tensor == nullptr || (of_label && batch.labels.empty())) {
      continue;
    }
    if (input.graph->kind() == GraphInput::NUMBERS) {
      const size_t width = input.graph->width();
      if (width == batch.dense_width && input.runs.size() == 1) {
        tensor->numbers = const_cast<float*>(batch.dense.data());  // inputs are never written
        continue;
      }
      run_->Allocate(tensor);
      for (size_t r = 0; r < batch.rows; ++r) {
        for (const Run& run : input.runs) {
          std::copy_n(batch.dense.data() + r * batch.dense_width + run.from, run.width,
                      tensor->numbers + r * width + run.to);
        }
      }
      continue;
    }
    if (input.graph->kind() == GraphInput::LABEL) {
      tensor->numbers = const_cast<float*>(batch.labels.data());
      continue;
    }
    if (input.graph->kind() == GraphInput::CLASS) {
      run_->Allocate(tensor);
      std::transform(batch.labels.begin(), batch.labels.end(), tensor->integers,
                     [](float id) { return static_cast<int64_t>(id); });
      continue;
    }
    const IdSlot& slot = batch.slots[input.slot];
    if (input.graph->kind() == GraphInput::BAG) {
      input.bag = {slot.ids, slot.ends, slot.weights};
      tensor->use = &input.bag;
      continue;
    }
    run_->Allocate(tensor);
    if (input.graph->kind() == GraphInput::IDS) {
      const std::vector<uint32_t>& ids = IdsOf(static_cast<size_t>(&input - inputs_.data()), batch);
      std::copy(ids.begin(), ids.end(), tensor->integers);
      continue;
    }
    const size_t length = input.graph->length();
    for (size_t r = 0; r < batch.rows; ++r) {
      const size_t count = std::min(length, slot.End(r) - slot.Begin(r));
      std::fill_n(tensor->numbers + r * length, count, 1.0F);
      std::fill_n(tensor->numbers + r * length + count, length - count, 0.0F);
    }
  }
}

}  // namespace sluice::models::graph
