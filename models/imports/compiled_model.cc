#include "models/imports/compiled_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "models/imports/compiled_model_internal.h"
#include "models/imports/keras_json_internal.h"
#include "models/imports/onnx_reader_internal.h"

namespace sluice::models {
namespace {

using keras::Json;

Status Damaged() {
  return InvalidArgument("the compiled form of the model is damaged")
      .Hint("CREATE OR REPLACE MODEL TYPE has it compiled anew");
}

// Of the model, and of the loss: empty if there is none.
struct Files {
  std::string_view model, loss;
};

Result<Files> ReadHeader(std::string_view compiled, rapidjson::Document* header) {
  const size_t end = compiled.find('\n');
  if (end == std::string_view::npos) {
    return Damaged();
  }
  // The document refers to nothing of this text after parsing.
  const std::string line(compiled.substr(0, end));
  if (!keras::ParseJson(line, header).ok() || !header->IsObject()) {
    return Damaged();
  }
  const std::string_view files = compiled.substr(end + 1);
  const double loss = keras::Number(*header, "loss_bytes", 0);
  if (!(loss >= 0 && loss <= static_cast<double>(files.size()))) {
    return Damaged();
  }
  const size_t begin = files.size() - static_cast<size_t>(loss);
  return Files{files.substr(0, begin), files.substr(begin)};
}

std::vector<double> NumbersOf(const Json& value) {
  std::vector<double> numbers;
  if (value.IsNumber() || value.IsBool()) {
    numbers.push_back(value.IsBool() ? (value.GetBool() ? 1 : 0) : value.GetDouble());
  }
  if (value.IsArray()) {
    for (const Json& element : value.GetArray()) {
      numbers.push_back(element.IsNumber() ? element.GetDouble() : 0);
    }
  }
  return numbers;
}

GraphParameter* FindParameter(const std::string& name, ImportedNetwork* network) {
  for (GraphParameter& parameter : *network->graph.mutable_parameters()) {
    if (parameter.name() == name) {
      return &parameter;
    }
  }
  return nullptr;  // no operator reads it
}

Status SetTables(const Json& tables, ImportedNetwork* network) {
  if (!tables.IsArray()) {
    return OkStatus();
  }
  for (const Json& table : tables.GetArray()) {
    if (!table.IsObject()) {
      return Damaged();
    }
    GraphParameter* parameter = FindParameter(keras::Text(table, "name"), network);
    const double rows = keras::Number(table, "rows", 0);
    constexpr double kMaxRows = 4e9;
    if (parameter == nullptr) {
      continue;
    }
    if (parameter->shape_size() != 2 || !(rows >= 1 && rows <= kMaxRows)) {
      return Damaged();
    }
    parameter->set_shape(0, static_cast<int64_t>(rows));
    parameter->set_initializer(keras::Text(table, "initializer"));
  }
  return OkStatus();
}

}  // namespace

Result<CompiledModel> ReadCompiledModel(std::string_view compiled) {
  rapidjson::Document header;
  RETURN_IF_ERROR(ReadHeader(compiled, &header).status());
  CompiledModel model;
  if (const Json& outputs = keras::Member(header, "outputs"); outputs.IsArray()) {
    for (const Json& output : outputs.GetArray()) {
      if (!output.IsObject()) {
        return Damaged();
      }
      CompiledModel::Output& read = model.outputs.emplace_back();
      read.width = static_cast<size_t>(std::clamp(keras::Number(output, "width", 1), 1.0, 1e6));
      read.values = NumbersOf(keras::Member(output, "values"));
    }
  }
  if (const Json& optimizer = keras::Member(header, "optimizer"); optimizer.IsObject()) {
    model.optimizer.name = keras::Text(optimizer, "name");
    model.optimizer.line = static_cast<int>(keras::Number(optimizer, "line", 0));
    if (const Json& arguments = keras::Member(optimizer, "arguments"); arguments.IsObject()) {
      for (const auto& argument : arguments.GetObject()) {
        model.optimizer.arguments.emplace_back(argument.name.GetString(),
                                               NumbersOf(argument.value));
      }
    }
  }
  model.loss_line = static_cast<int>(keras::Number(header, "loss_line", 0));
  if (const Json& losses = keras::Member(header, "losses"); losses.IsArray()) {
    for (const Json& batch : losses.GetArray()) {
      if (!batch.IsObject()) {
        return Damaged();
      }
      model.losses.push_back(
          {NumbersOf(keras::Member(batch, "labels")), NumbersOf(keras::Member(batch, "losses"))});
    }
  }
  return model;
}

Result<std::optional<ImportedNetwork>> ReadCompiledLoss(std::string_view compiled) {
  rapidjson::Document header;
  ASSIGN_OR_RETURN(const Files files, ReadHeader(compiled, &header));
  if (files.loss.empty()) {
    return std::optional<ImportedNetwork>();
  }
  Result<ImportedNetwork> loss = ReadOnnx(files.loss, {});
  if (!loss.ok()) {
    return loss.status().Because("loss");
  }
  return std::optional<ImportedNetwork>(std::move(loss).value());
}

Result<ImportedNetwork> ReadCompiledNetwork(std::string_view compiled) {
  rapidjson::Document header;
  ASSIGN_OR_RETURN(const Files files, ReadHeader(compiled, &header));
  ASSIGN_OR_RETURN(ImportedNetwork network, ReadOnnx(files.model, {}));
  if (const Json& frozen = keras::Member(header, "frozen"); frozen.IsArray()) {
    for (const Json& name : frozen.GetArray()) {
      GraphParameter* parameter =
          name.IsString() ? FindParameter(name.GetString(), &network) : nullptr;
      if (parameter != nullptr) {
        parameter->set_group(GraphParameter::FROZEN);
      }
    }
  }
  // Tracing has changed the running statistics of batches: those of before count.
  if (const Json& statistics = keras::Member(header, "statistics"); statistics.IsObject()) {
    for (const auto& one : statistics.GetObject()) {
      const auto values = network.values.find(one.name.GetString());
      const std::vector<double> numbers = NumbersOf(one.value);
      if (values != network.values.end() && values->second.size() == numbers.size()) {
        std::transform(numbers.begin(), numbers.end(), values->second.begin(),
                       [](double number) { return static_cast<float>(number); });
      }
    }
  }
  RETURN_IF_ERROR(SetTables(keras::Member(header, "tables"), &network));
  return network;
}

Status CheckHeldWhole(const ImportedNetwork& network) {
  for (const GraphParameter& parameter : network.graph.parameters()) {
    int64_t size = 1;
    for (const int64_t extent : parameter.shape()) {
      size *= extent;
    }
    const auto values = network.values.find(parameter.name());
    if (values != network.values.end() && std::cmp_not_equal(values->second.size(), size)) {
      return InvalidArgument(
                 fmt::format("'{}' of {} rows would be held whole: something other than the ids of "
                             "one feature reads it, or other operators do, too",
                             parameter.name(), parameter.shape(0)))
          .Hint("embeddings of up to 4,096 rows may be used in any way");
    }
  }
  return OkStatus();
}

}  // namespace sluice::models
