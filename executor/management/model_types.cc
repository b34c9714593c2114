#include "executor/management/model_types.h"

#include <fmt/core.h>

#include <optional>

#include "catalog/catalog.h"
#include "executor/executor.h"
#include "executor/result_rows.h"
#include "models/registry/python_type.h"
#include "models/registry/registry.h"
#include "models/registry/unknown_type.h"

namespace sluice::executor {
namespace {

std::string Join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

std::string FamilyName(models::ModelFamily family) {
  switch (family) {
    case models::ModelFamily::kLinear:
      return "linear";
    case models::ModelFamily::kDeep:
      return "deep network";
    case models::ModelFamily::kWideDeep:
      return "wide and deep network";
    case models::ModelFamily::kTrees:
      return "trees";
  }
  return "";
}

std::string TaskName(models::ModelTask task) {
  switch (task) {
    case models::ModelTask::kClassification:
      return "classification";
    case models::ModelTask::kRegression:
      return "regression";
    case models::ModelTask::kRanking:
      return "ranking";
    case models::ModelTask::kByObjective:
      return "by its objective";
  }
  return "";
}

Value DefaultText(const models::AttributeSpec& attribute) {
  if (const auto* flag = std::get_if<bool>(&attribute.default_value)) {
    return std::string(*flag ? "true" : "false");
  }
  if (const auto* integer = std::get_if<int64_t>(&attribute.default_value)) {
    return fmt::format("{}", *integer);
  }
  if (const auto* number = std::get_if<double>(&attribute.default_value)) {
    return FormatDouble(*number);
  }
  if (const auto* text = std::get_if<std::string>(&attribute.default_value)) {
    return *text;
  }
  if (const auto* list = std::get_if<std::vector<double>>(&attribute.default_value)) {
    std::string joined;
    for (const double value : *list) {
      joined += (joined.empty() ? "" : ", ") + FormatDouble(value);
    }
    return "[" + joined + "]";
  }
  return attribute.required ? Value("required") : Value();
}

Value RangeText(const models::AttributeSpec& attribute) {
  if (!attribute.allowed.empty()) {
    return Join(attribute.allowed);
  }
  if (attribute.min && attribute.max) {
    return fmt::format("{} to {}", FormatDouble(*attribute.min), FormatDouble(*attribute.max));
  }
  if (attribute.min) {
    return "at least " + FormatDouble(*attribute.min);
  }
  if (attribute.max) {
    return "at most " + FormatDouble(*attribute.max);
  }
  return std::monostate{};
}

Status DescribeAttributes(const models::ModelType& type, ResultSink& sink) {
  ResultRows rows(Schema{{{"attribute", DataType::kText, "text"},
                          {"type", DataType::kText, "text"},
                          {"default", DataType::kText, "text"},
                          {"allowed", DataType::kText, "text"},
                          {"description", DataType::kText, "text"}}});
  for (const models::AttributeSpec& attribute : type.attributes) {
    rows.Add({attribute.name, std::string(models::AttributeTypeName(attribute.type)),
              DefaultText(attribute), RangeText(attribute), attribute.doc});
  }
  return rows.SendTo(sink);
}

std::string TypeName(const catalog::ModelVersion& type) {
  return type.schema.empty() ? type.name : type.schema + "." + type.name;
}

}  // namespace

Status ShowModelTypes(Context& context, ResultSink& sink) {
  ResultRows rows(Schema{{{"type", DataType::kText, "text"},
                          {"family", DataType::kText, "text"},
                          {"task", DataType::kText, "text"},
                          {"also known as", DataType::kText, "text"},
                          {"description", DataType::kText, "text"},
                          {"language", DataType::kText, "text"},
                          {"owner", DataType::kText, "text"}}});
  for (const models::ModelType& type : models::ModelTypes()) {
    rows.Add({type.name, FamilyName(type.family), TaskName(type.task), Join(type.aliases), type.doc,
              std::monostate{}, std::monostate{}});
  }
  ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> brought,
                   context.catalog.model_types().List());
  for (const catalog::ModelVersion& type : brought) {
    rows.Add({TypeName(type), std::string("network"), std::string("by its label"), std::string(),
              fmt::format("version {}, {} bytes", type.version, type.weights_bytes), type.type,
              type.owner.empty() ? Value() : Value(type.owner)});
  }
  return rows.SendTo(sink);
}

Status DescribeModelType(const std::string& name, Span place, Context& context, ResultSink& sink) {
  const models::ModelType* type = models::FindModelType(name);
  std::optional<models::ModelType> own;
  if (type == nullptr) {
    std::vector<std::string> known;
    ASSIGN_OR_RETURN(const std::vector<catalog::ModelVersion> all,
                     context.catalog.model_types().List());
    for (const catalog::ModelVersion& brought : all) {
      known.push_back(TypeName(brought));
      if (TypeName(brought) == name) {
        sink.Notice(fmt::format("{}: version {}, in {}{}", name, brought.version, brought.type,
                                brought.owner.empty() ? "" : ", owned by " + brought.owner));
        ASSIGN_OR_RETURN(const std::string source,
                         context.catalog.model_types().LoadWeights(brought));
        own = models::UserType(name, "", true, models::AttributesOfSource(brought.type, source));
        type = &*own;
      }
    }
    if (type != nullptr) {
      return DescribeAttributes(*type, sink);
    }
    return NotFound(fmt::format("no model type '{}'", name))
        .At(place)
        .Hint(models::WhatTypeIsMeant(name, known).hint);
  }
  return DescribeAttributes(*type, sink);
}

}  // namespace sluice::executor
