#include "models/registry/python_type.h"

#include <fmt/core.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/letter_case.h"
#include "models/model_language.h"
#include "models/registry/registry_internal.h"

namespace sluice::models {
namespace {

constexpr size_t kMaxBytes = size_t{1} << 20;

std::string TextOf(const rapidjson::Value& object, const char* name) {
  const auto member = object.FindMember(name);
  return member != object.MemberEnd() && member->value.IsString() ? member->value.GetString() : "";
}

AttributeDefault DefaultOf(const rapidjson::Value& value, AttributeType type) {
  if (value.IsBool()) {
    return value.GetBool();
  }
  if (value.IsNumber() && type == AttributeType::kNumber) {
    return value.GetDouble();
  }
  if (value.IsInt64()) {
    return value.GetInt64();
  }
  if (value.IsString()) {
    return std::string(value.GetString());
  }
  if (!value.IsArray() || type == AttributeType::kTextList) {
    return std::monostate{};
  }
  std::vector<double> numbers;
  for (const rapidjson::Value& element : value.GetArray()) {
    if (element.IsNumber()) {
      numbers.push_back(element.GetDouble());
    }
  }
  return numbers;
}

Result<AttributeSpec> ReadAttribute(const rapidjson::Value& attribute) {
  static const std::map<std::string, AttributeType, std::less<>> types = {
      {"flag", AttributeType::kFlag},
      {"integer", AttributeType::kInteger},
      {"number", AttributeType::kNumber},
      {"text", AttributeType::kText},
      {"integers", AttributeType::kIntegerList},
      {"numbers", AttributeType::kNumberList},
      {"texts", AttributeType::kTextList}};
  const auto type = attribute.IsObject() ? types.find(TextOf(attribute, "type")) : types.end();
  const std::string name = type == types.end() ? "" : TextOf(attribute, "name");
  if (name.empty()) {
    return InvalidArgument("the description of the model type is damaged");
  }
  const auto otherwise = attribute.FindMember("default");
  AttributeSpec spec;
  spec.name = "model." + name;
  spec.type = type->second;
  spec.doc = TextOf(attribute, "doc");
  if (otherwise != attribute.MemberEnd()) {
    spec.default_value = DefaultOf(otherwise->value, spec.type);
  }
  const auto required = attribute.FindMember("required");
  spec.required = required != attribute.MemberEnd() && required->value.IsTrue();
  return spec;
}

// Of every network, whatever its label.
Status CheckNotCommon(const AttributeSpec& spec) {
  for (const bool classes : {true, false}) {
    for (const AttributeSpec& common : UserType("", "", classes, {}).attributes) {
      if (SameIgnoringCase(common.name, spec.name)) {
        return InvalidArgument(
                   fmt::format("attribute '{}' has the name of one that every network has",
                               spec.name.substr(spec.name.find('.') + 1)))
            .Hint(fmt::format("{}: {}", common.name, common.doc));
      }
    }
  }
  return OkStatus();
}

}  // namespace

Result<PythonType> ReadPythonType(std::string_view description) {
  rapidjson::Document document;
  if (description.size() > kMaxBytes ||
      document.Parse<rapidjson::kParseIterativeFlag>(description.data(), description.size())
          .HasParseError() ||
      !document.IsObject()) {
    return InvalidArgument("the description of the model type is damaged");
  }
  PythonType type;
  type.class_name = TextOf(document, "class");
  for (const char* framework : {"torch", "keras"}) {
    if (const std::string version = TextOf(document, framework); !version.empty()) {
      type.framework = fmt::format("{} {}", framework, version);
    }
  }
  type.doc = TextOf(document, "doc");
  const rapidjson::Value& object = document;
  const auto attributes = object.FindMember("attributes");
  if (attributes == object.MemberEnd() || !attributes->value.IsArray()) {
    return InvalidArgument("the description of the model type is damaged");
  }
  for (const rapidjson::Value& attribute : attributes->value.GetArray()) {
    ASSIGN_OR_RETURN(AttributeSpec spec, ReadAttribute(attribute));
    RETURN_IF_ERROR(CheckNotCommon(spec));
    type.attributes.push_back(std::move(spec));
  }
  return type;
}

DescribedSource SplitDescribedSource(std::string_view stored) {
  const size_t end = std::min(stored.find('\n'), stored.size());
  return {stored.substr(0, end), stored.substr(std::min(end + 1, stored.size()))};
}

std::vector<AttributeSpec> AttributesOfSource(std::string_view language, std::string_view stored) {
  if (!IsPython(language)) {
    return AttributesOfLanguage(language);
  }
  Result<PythonType> type = ReadPythonType(SplitDescribedSource(stored).description);
  return type.ok() ? std::move(type->attributes) : std::vector<AttributeSpec>();
}

}  // namespace sluice::models
