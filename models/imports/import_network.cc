#include "models/imports/import_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/graph/graph_output.h"
#include "models/graph/graph_tables.h"
#include "models/imports/bind_features_internal.h"
#include "models/imports/compiled_model.h"
#include "models/imports/compiled_model_internal.h"
#include "models/imports/keras_reader_internal.h"
#include "models/imports/onnx_reader_internal.h"
#include "models/imports/onnx_rewrite_internal.h"
#include "models/imports/own_loss_internal.h"
#include "models/networks/initialize.h"
#include "models/networks/loss.h"

namespace sluice::models {
namespace {

Result<ImportedNetwork> Read(const ImportSource& source) {
  if (source.language == "onnx") {
    return ReadOnnx(source.text, source.frozen);
  }
  if (source.language == "keras") {
    return ReadKeras(source.text);
  }
  if (source.language == "pytorch") {
    return ReadCompiledNetwork(source.text);
  }
  if (source.language == kKerasInPython) {
    return ReadCompiledKeras(source.text);
  }
  return Unimplemented(fmt::format("no network is read from '{}'", source.language));
}

Result<std::optional<OwnLoss>> ReadOwnLoss(std::string_view compiled) {
  ASSIGN_OR_RETURN(std::optional<ImportedNetwork> loss, ReadCompiledLoss(compiled));
  ASSIGN_OR_RETURN(const CompiledModel model, ReadCompiledModel(compiled));
  if (!loss) {
    return std::optional<OwnLoss>();
  }
  const size_t width = model.outputs.empty() ? 1 : model.outputs.front().width;
  return std::optional<OwnLoss>(OwnLoss{std::move(*loss), width});
}

// Tables whose values are in the file begin with these; other rows are initialised when they are
// first read.
NetworkWeights StartOf(ImportedNetwork* network, uint64_t seed) {
  NetworkWeights start;
  for (const GraphParameter& parameter : network->graph.parameters()) {
    auto values = network->values.find(parameter.name());
    if (values != network->values.end()) {
      start.dense.push_back(std::move(values->second));
      continue;
    }
    DenseTensor tensor;
    tensor.name = parameter.name();
    tensor.shape.assign(parameter.shape().begin(), parameter.shape().end());
    tensor.initializer = parameter.initializer();
    InitializeDense(tensor, seed, start.dense.emplace_back(tensor.size()));
  }
  for (const GraphTable& table : network->graph.tables()) {
    NetworkWeights::Table& rows = start.tables.emplace_back();
    const auto values = network->values.find(table.name());
    if (values != network->values.end()) {
      rows.values = std::move(values->second);
      // A compiled form has the first rows of a large table only.
      rows.ids.resize(rows.values.size() / std::max<uint32_t>(table.dimension(), 1));
      std::iota(rows.ids.begin(), rows.ids.end(), int64_t{0});
    }
  }
  return start;
}

// A few words of a file may ask for more than any machine has.
Status CheckSize(const NetworkGraph& graph, int64_t most_bytes) {
  double bytes = 0;
  for (const GraphParameter& parameter : graph.parameters()) {
    double numbers = 1;
    for (const int64_t width : parameter.shape()) {
      numbers *= static_cast<double>(width);
    }
    bytes += numbers * sizeof(float);
  }
  if (bytes <= static_cast<double>(most_bytes)) {
    return OkStatus();
  }
  constexpr double kMebibyte = 1 << 20;
  return ResourceExhausted(fmt::format("the model's parameters take {:.0f} MiB, and {:.0f} MiB may "
                                       "be used",
                                       bytes / kMebibyte,
                                       static_cast<double>(most_bytes) / kMebibyte))
      .SqlState("53200")
      .Hint("smaller layers, or a larger --memory-limit");
}

// The output becomes what ModelSpec.loss takes, unless the network has a loss of its own.
Status FitToLabel(std::optional<OwnLoss> own, ModelSpec* spec, ImportedNetwork* network,
                  std::vector<std::string>* notes) {
  ASSIGN_OR_RETURN(const Loss loss, Loss::Make(*spec));
  const LabelPlan& label = spec->features().label();
  const std::string output =
      network->graph.outputs_size() > 0 ? network->graph.outputs(0) : std::string();
  const std::string left =
      FitOutput(loss.outputs(), label.kind() == LabelPlan::CLASS, &network->graph, notes);
  return own ? AttachLoss(std::move(*own), output, left, label, network) : OkStatus();
}

Status Finish(ImportedNetwork network, std::optional<OwnLoss> own, int64_t most_bytes,
              ModelSpec* spec, ImportReport* report) {
  report->notes = std::move(network.notes);
  RETURN_IF_ERROR(BindToFeatures(spec->features(), &network, &report->unread_features));
  RETURN_IF_ERROR(FitToLabel(std::move(own), spec, &network, &report->notes));
  for (std::string& note : MakeTables(&network.graph)) {
    report->notes.push_back(std::move(note));
  }
  RETURN_IF_ERROR(CheckHeldWhole(network));
  RETURN_IF_ERROR(CheckSize(network.graph, most_bytes));
  if (!network.values.empty()) {
    report->start = StartOf(&network, spec->seed());
  }
  *spec->mutable_graph() = std::move(network.graph);
  return OkStatus();
}

}  // namespace

const std::vector<std::string>& ImportLanguages() {
  static const std::vector<std::string> languages = {"onnx", "keras", "pytorch"};
  return languages;
}

Status ImportNetwork(const ImportSource& source, ModelSpec* spec, ImportReport* report) {
  ASSIGN_OR_RETURN(ImportedNetwork network, Read(source));
  std::optional<OwnLoss> own;
  if (source.language == "pytorch" && source.own_loss) {
    ASSIGN_OR_RETURN(own, ReadOwnLoss(source.text));
  }
  return Finish(std::move(network), std::move(own), source.most_bytes, spec, report);
}

Status ImportLossAlone(std::string_view compiled, size_t width, ModelSpec* spec) {
  ASSIGN_OR_RETURN(std::optional<OwnLoss> own, ReadOwnLoss(compiled));
  if (!own) {
    return InvalidArgument("the model has no loss of its own");
  }
  FeaturePlan* features = spec->mutable_features();
  ImportedNetwork network;
  GraphInput* input = network.graph.add_inputs();
  input->set_name("outputs");
  input->set_width(static_cast<uint32_t>(width));
  for (size_t i = 0; i < width; ++i) {
    Feature* feature = features->add_features();
    feature->set_name(fmt::format("output {}", i));
    feature->set_scale(1);
    feature->add_inputs(static_cast<uint32_t>(features->inputs_size()));
    InputColumn* column = features->add_inputs();
    column->set_name(feature->name());
    column->set_type(static_cast<int32_t>(DataType::kDouble));
    input->add_features(feature->name());
  }
  GraphParameter* shift = network.graph.add_parameters();  // for gradients
  shift->set_name("shift");
  shift->add_shape(static_cast<int64_t>(width));
  shift->set_initializer("zeros");
  network.graph.add_outputs(AddNode("Add", {"outputs", "shift"}, "shifted", &network.graph));
  std::vector<std::string> notes;
  RETURN_IF_ERROR(FitToLabel(std::move(own), spec, &network, &notes));
  *spec->mutable_graph() = std::move(network.graph);
  return OkStatus();
}

Status CheckImport(const ImportSource& source) {
  return Read(source).status();
}

}  // namespace sluice::models
