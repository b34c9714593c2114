#include "planner/stored_attributes_internal.h"

#include <fmt/core.h>

#include <algorithm>

#include "models/model.pb.h"
#include "models/registry/registry.h"
#include "planner/attribute_value_internal.h"

namespace sluice::planner {
namespace {

using models::AttributeType;
using parser::AttributeValue;

// As a statement would have it; nothing for texts, whose words libraries and models check.
AttributeValue AsWritten(const models::Attribute& attribute) {
  AttributeValue written;
  switch (attribute.value_case()) {
    case models::Attribute::kFlag:
      written.value = attribute.flag();
      break;
    case models::Attribute::kInteger:
      written.value = int64_t{attribute.integer()};
      break;
    case models::Attribute::kNumber:
      written.value = attribute.number();
      break;
    case models::Attribute::kNumbers: {
      AttributeValue::List list;
      for (const double number : attribute.numbers().values()) {
        list.push_back({number, {}});
      }
      written.value = std::move(list);
      break;
    }
    default:
      break;
  }
  return written;
}

}  // namespace

Status CheckStoredAttributes(const models::ModelSpec& model) {
  const models::ModelType* const type = models::FindModelType(model.type());
  if (type == nullptr) {
    return OkStatus();  // that it exists is checked where the model is made
  }
  for (const models::Attribute& attribute : model.attributes()) {
    const auto spec = std::find_if(
        type->attributes.begin(), type->attributes.end(),
        [&](const models::AttributeSpec& each) { return each.name == attribute.name(); });
    if (spec == type->attributes.end()) {
      continue;  // nothing reads it
    }
    const bool text = spec->type == AttributeType::kText || spec->type == AttributeType::kTextList;
    const AttributeValue written = AsWritten(attribute);
    if (!text) {
      RETURN_IF_ERROR(ReadValue(*spec, written).status());
    } else if (!std::holds_alternative<std::monostate>(written.value) && !spec->or_number) {
      return InvalidArgument(fmt::format("attribute {} is no text", spec->name));
    }
  }
  return OkStatus();
}

}  // namespace sluice::planner
