#include "models/imports/import_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "models/graph/graph_output.h"
#include "models/graph/graph_tables.h"
#include "models/imports/bind_features_internal.h"
#include "models/imports/compiled_model_internal.h"
#include "models/imports/keras_reader_internal.h"
#include "models/imports/onnx_reader_internal.h"
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
  return Unimplemented(fmt::format("no network is read from '{}'", source.language));
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

Status Finish(ImportedNetwork network, ModelSpec* spec, ImportReport* report) {
  report->notes = std::move(network.notes);
  RETURN_IF_ERROR(BindToFeatures(spec->features(), &network, &report->unread_features));
  ASSIGN_OR_RETURN(const Loss loss, Loss::Make(*spec));
  const bool classes = spec->features().label().kind() == LabelPlan::CLASS;
  FitOutput(loss.outputs(), classes, &network.graph, &report->notes);
  for (std::string& note : MakeTables(&network.graph)) {
    report->notes.push_back(std::move(note));
  }
  RETURN_IF_ERROR(CheckHeldWhole(network));
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
  return Finish(std::move(network), spec, report);
}

Status CheckImport(const ImportSource& source) {
  return Read(source).status();
}

}  // namespace sluice::models
