#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "models/model.pb.h"
#include "models/networks/network_internal.h"

namespace sluice::models {
namespace {

// Features with up to this many ids share a table, so that there are few tables to pull; larger
// ones have their own, so that the shared one stays small enough for a stamp per row.
constexpr uint32_t kLargestShared = 1 << 16;
constexpr int64_t kLargestSharedTable = 1 << 20;
// A wider layer is a mistake in the statement (a kernel of 2^36 weights).
constexpr double kWidestLayer = 1 << 18;
constexpr int kMaxLayers = 64;

// An attribute by its name after "model.", with or without the "dnn_" of the combined types.
const Attribute* FindModelAttribute(const ModelSpec& spec, std::string_view name) {
  for (const Attribute& attribute : spec.attributes()) {
    std::string_view own = attribute.name();
    for (const std::string_view prefix : {"model.", "dnn_", "linear_"}) {
      if (own.substr(0, prefix.size()) == prefix) {
        own.remove_prefix(prefix.size());
      }
    }
    if (own == name) {
      return &attribute;
    }
  }
  return nullptr;
}

Status Wrong(const Attribute& attribute, std::string_view expected) {
  return InvalidArgument(fmt::format("attribute {} must be {}", attribute.name(), expected));
}

// Model types are distinguished by name, so that a plan's spec is sufficient.
Status SetFamily(const std::string& type, NetworkShape* shape) {
  const std::string_view name = std::string_view(type).substr(type.rfind('.') + 1);
  const auto is = [name](std::string_view prefix) { return name.starts_with(prefix); };
  if (is("DNNLinearCombined") || is("Auto")) {
    shape->wide = shape->deep = true;
  } else if (is("DNN") || is("RawDNN") || is("dnnclassifier_functional_model")) {
    shape->deep = true;
  } else if (is("Linear")) {
    shape->wide = true;
  } else {
    return NotFound(fmt::format("no network of type '{}'", type))
        .Hint("networks: Linear..., DNN..., DNNLinearCombined... Classifier or Regressor");
  }
  return OkStatus();
}

Status SetHiddenUnits(const ModelSpec& spec, NetworkShape* shape) {
  const Attribute* attribute = FindModelAttribute(spec, "hidden_units");
  if (attribute == nullptr) {
    return InvalidArgument(fmt::format("{} needs model.hidden_units", spec.type()))
        .Hint("for example model.hidden_units=[64,32]");
  }
  const int layers = attribute->numbers().values_size();
  if (layers == 0 || layers > kMaxLayers) {
    return Wrong(*attribute, fmt::format("a list of 1 to {} layers, not of {}", kMaxLayers, layers))
        .Hint(layers == 0 ? "for example [64, 32]; a model without hidden layers is a "
                            "LinearClassifier or LinearRegressor"
                          : "few networks on tables gain from more than four");
  }
  for (const double width : attribute->numbers().values()) {
    if (!(width >= 1 && width <= kWidestLayer && width == std::floor(width))) {
      return Wrong(*attribute, fmt::format("a list of whole numbers between 1 and {}, not {}",
                                           kWidestLayer, width));
    }
    shape->hidden_units.push_back(static_cast<size_t>(width));
  }
  return OkStatus();
}

Status SetActivation(const ModelSpec& spec, NetworkShape* shape) {
  static constexpr std::array kActivations = {
      std::pair{"relu", Activation::kRelu},
      std::pair{"tanh", Activation::kTanh},
      std::pair{"sigmoid", Activation::kSigmoid},
      std::pair{"elu", Activation::kElu},
      std::pair{"leaky_relu", Activation::kLeakyRelu},
      std::pair{"selu", Activation::kSelu},
      std::pair{"gelu", Activation::kGelu},
  };
  const Attribute* attribute = FindModelAttribute(spec, "activation_fn");
  if (attribute == nullptr || attribute->text().empty()) {
    return OkStatus();
  }
  std::vector<std::string> names;
  for (const auto& [name, activation] : kActivations) {
    if (attribute->text() == name) {
      shape->activation = activation;
      return OkStatus();
    }
    names.emplace_back(name);
  }
  Status status = NotFound(
      fmt::format("no activation '{}' for attribute {}", attribute->text(), attribute->name()));
  if (const auto near = NearestName(attribute->text(), names)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return std::move(status).Hint("relu, tanh, sigmoid, elu, leaky_relu, selu, gelu");
}

Status SetRegularisation(const ModelSpec& spec, NetworkShape* shape) {
  if (const Attribute* attribute = FindModelAttribute(spec, "dropout")) {
    const bool integer = attribute->value_case() == Attribute::kInteger;
    const double share = integer ? static_cast<double>(attribute->integer()) : attribute->number();
    if (!(share >= 0 && share < 1)) {
      return Wrong(*attribute, fmt::format("at least 0 and less than 1, not {}", share));
    }
    shape->dropout = static_cast<float>(share);
  }
  const Attribute* batch_norm = FindModelAttribute(spec, "batch_norm");
  if (batch_norm != nullptr && batch_norm->flag()) {
    return InvalidArgument(fmt::format("attribute {} is set, and the model's layers have no batch "
                                       "normalisation",
                                       batch_norm->name()))
        .Hint("a model to continue from keeps its layers: leave out USING, or the attribute");
  }
  return OkStatus();
}

Result<Combiner> FindCombiner(std::string_view name, std::string_view of) {
  if (name.empty() || name == "sum") {
    return Combiner::kSum;
  }
  if (name == "mean") {
    return Combiner::kMean;
  }
  if (name == "sqrtn") {
    return Combiner::kSqrtn;
  }
  return NotFound(fmt::format("no combiner '{}' for {}", name, of)).Hint("sum, mean or sqrtn");
}

void AddDense(const DenseColumn& column, DenseInput* input) {
  if (!input->runs.empty()) {
    DenseRun& last = input->runs.back();
    if (last.from + last.width == column.offset) {
      last.width += column.width;
      input->width += column.width;
      return;
    }
  }
  input->runs.push_back({column.offset, input->width, column.width});
  input->width += column.width;
}

void AddTensor(std::string name, const std::vector<size_t>& shape, bool wide,
               std::string initializer, NetworkShape* network) {
  DenseTensor tensor;
  tensor.name = std::move(name);
  for (const size_t extent : shape) {
    tensor.shape.push_back(static_cast<int64_t>(extent));
  }
  tensor.group = wide ? DenseTensor::Group::kWide : DenseTensor::Group::kDeep;
  tensor.initializer = std::move(initializer);
  network->dense.push_back(std::move(tensor));
}

// Appends a feature's rows to the last table of the same kind, or creates a new table.
void AddSlot(const EmbeddingTable& make, TableUse::Kind kind, SlotUse use,
             const std::string& feature, NetworkShape* shape) {
  if (use.buckets <= kLargestShared) {
    for (size_t t = 0; t < shape->tables.size(); ++t) {
      EmbeddingTable& table = shape->tables[t];
      const bool shared = shape->uses[t].slots.front().buckets <= kLargestShared;
      if (shared && shape->uses[t].kind == kind && table.dimension == make.dimension &&
          table.initializer == make.initializer &&
          table.rows + use.buckets <= kLargestSharedTable) {
        use.offset = table.rows;
        table.rows += use.buckets;
        shape->uses[t].slots.push_back(use);
        return;
      }
    }
  }
  EmbeddingTable table = make;
  table.name += feature;  // a shared table has the first one's name
  table.rows = use.buckets;
  shape->tables.push_back(std::move(table));
  shape->uses.push_back({kind, {use}});
}

std::string FeatureName(const ModelSpec& spec, const SlotColumn& column) {
  return spec.features().features(static_cast<int>(column.feature)).name();
}

Status AddWide(const ModelSpec& spec, const FeatureTransform& transform, size_t outputs,
               NetworkShape* shape) {
  const Attribute* attribute = FindModelAttribute(spec, "sparse_combiner");
  ASSIGN_OR_RETURN(
      const Combiner combiner,
      FindCombiner(attribute == nullptr ? "" : attribute->text(), "attribute sparse_combiner"));
  for (const DenseColumn& column : transform.dense_columns()) {
    if (!shape->deep || column.in_wide) {
      AddDense(column, &shape->wide_dense);
    }
  }
  for (size_t s = 0; s < transform.slots().size(); ++s) {
    const SlotColumn& column = transform.slots()[s];
    if (!shape->deep || column.in_wide) {
      EmbeddingTable table;
      table.name = "wide/";
      table.dimension = static_cast<uint32_t>(outputs);
      table.wide = true;
      table.initializer = "zeros";
      AddSlot(table, TableUse::Kind::kWide, {s, 0, column.buckets, combiner, 0},
              FeatureName(spec, column), shape);
    }
  }
  if (shape->wide_dense.width > 0) {
    AddTensor("wide/kernel", {shape->wide_dense.width, outputs}, true, "zeros", shape);
  }
  AddTensor("wide/bias", {outputs}, true, "zeros", shape);
  return OkStatus();
}

Status AddEmbeddings(const ModelSpec& spec, const FeatureTransform& transform,
                     NetworkShape* shape) {
  for (size_t s = 0; s < transform.slots().size(); ++s) {
    const SlotColumn& column = transform.slots()[s];
    if (!column.embedding || (shape->wide && !column.in_deep)) {
      continue;
    }
    const std::string feature = FeatureName(spec, column);
    if (column.dimension == 0 || column.dimension > kWidestLayer) {
      return InvalidArgument(fmt::format("the embedding of '{}' has dimension {}: between 1 and {}",
                                         feature, column.dimension, kWidestLayer));
    }
    ASSIGN_OR_RETURN(const Combiner combiner,
                     FindCombiner(column.combiner, fmt::format("embedding of '{}'", feature)));
    RETURN_IF_ERROR(
        CheckInitializer(column.initializer, fmt::format("the embedding of '{}'", feature)));
    EmbeddingTable table;
    table.name = "embedding/";
    table.dimension = column.dimension;
    table.initializer = column.initializer;
    AddSlot(table, TableUse::Kind::kEmbedding,
            {s, 0, column.buckets, combiner, shape->embedding_width}, feature, shape);
    shape->embedding_width += column.dimension;
  }
  return OkStatus();
}

// Indicators are counted first: they are inputs of the first layer like any other.
void AddIndicators(const ModelSpec& spec, const FeatureTransform& transform, size_t count,
                   const std::string& initializer, NetworkShape* shape) {
  for (size_t s = 0; count > 0 && s < transform.slots().size(); ++s) {
    const SlotColumn& column = transform.slots()[s];
    if (column.embedding || (shape->wide && !column.in_deep)) {
      continue;
    }
    EmbeddingTable table;
    table.name = "indicator/";
    table.dimension = static_cast<uint32_t>(shape->hidden_units.front());
    table.initializer = initializer;
    AddSlot(table, TableUse::Kind::kIndicator, {s, 0, column.buckets, Combiner::kSum, 0},
            FeatureName(spec, column), shape);
  }
}

Status AddDeep(const ModelSpec& spec, const FeatureTransform& transform, size_t outputs,
               NetworkShape* shape) {
  RETURN_IF_ERROR(SetHiddenUnits(spec, shape));
  RETURN_IF_ERROR(SetActivation(spec, shape));
  RETURN_IF_ERROR(SetRegularisation(spec, shape));
  if (!(spec.input_bound() >= 0) || !std::isfinite(spec.input_bound())) {
    return InvalidArgument(fmt::format("inputs are bounded by {}", spec.input_bound()));
  }
  shape->input_bound = static_cast<float>(spec.input_bound());
  for (const DenseColumn& column : transform.dense_columns()) {
    if (!shape->wide || column.in_deep) {
      AddDense(column, &shape->deep_dense);
    }
  }
  RETURN_IF_ERROR(AddEmbeddings(spec, transform, shape));
  size_t indicators = 0;
  for (const SlotColumn& column : transform.slots()) {
    indicators += !column.embedding && (!shape->wide || column.in_deep) ? 1 : 0;
  }
  const size_t inputs = shape->input_width() + indicators;
  if (inputs == 0) {
    return InvalidArgument(fmt::format("no feature goes into the deep part of {}", spec.type()));
  }
  // Glorot, Bengio 2010, counting only inputs that are not zero: an indicator counts once, however
  // many values it may have.
  const double limit = std::sqrt(6.0 / static_cast<double>(inputs + shape->hidden_units.front()));
  const std::string first = fmt::format("uniform:{:.9g}", limit);
  AddIndicators(spec, transform, indicators, first, shape);
  size_t width = shape->input_width();
  for (size_t l = 0; l <= shape->hidden_units.size(); ++l) {
    const bool last = l == shape->hidden_units.size();
    const std::string name = last ? "deep/logits" : fmt::format("deep/{}", l);
    const size_t next = last ? outputs : shape->hidden_units[l];
    if (width > 0) {
      AddTensor(name + "/kernel", {width, next}, false, l == 0 ? first : "glorot_uniform", shape);
    }
    AddTensor(name + "/bias", {next}, false, "zeros", shape);
    width = next;
  }
  return OkStatus();
}

}  // namespace

Status CheckInitializer(std::string_view name, std::string_view of) {
  static const std::vector<std::string> kNames = {"normal",     "uniform",        "zeros",
                                                  "ones",       "glorot_uniform", "glorot_normal",
                                                  "he_uniform", "he_normal"};
  if (name.empty() || std::find(kNames.begin(), kNames.end(), name) != kNames.end()) {
    return OkStatus();
  }
  Status status = NotFound(fmt::format("no initializer '{}' for {}", name, of));
  if (const auto near = NearestName(name, kNames)) {
    return std::move(status).Hint(fmt::format("did you mean '{}'?", *near));
  }
  return std::move(status).Hint("normal, uniform, zeros, ones, glorot_uniform, he_normal");
}

Result<NetworkShape> ShapeOf(const ModelSpec& spec, const FeatureTransform& transform,
                             size_t outputs) {
  NetworkShape shape;
  RETURN_IF_ERROR(SetFamily(spec.type(), &shape));
  if (transform.dense_columns().empty() && transform.slots().empty()) {
    return InvalidArgument(fmt::format("{} needs a feature", spec.type()))
        .Hint("select a column in addition to the label");
  }
  if (shape.wide) {
    RETURN_IF_ERROR(AddWide(spec, transform, outputs, &shape));
  }
  if (shape.deep) {
    RETURN_IF_ERROR(AddDeep(spec, transform, outputs, &shape));
  }
  return shape;
}

}  // namespace sluice::models
