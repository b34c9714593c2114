#include "k8s/object.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

// Fills in the fields that every object has.
void ReadMetadata(const rapidjson::Value& value, Object& object) {
  object.name = TextIn(value, {"metadata", "name"});
  object.namespace_name = TextIn(value, {"metadata", "namespace"});
  object.uid = TextIn(value, {"metadata", "uid"});
  object.resource_version = TextIn(value, {"metadata", "resourceVersion"});
  object.leaving = !TextIn(value, {"metadata", "deletionTimestamp"}).empty();
  const rapidjson::Value* labels = FindIn(value, {"metadata", "labels"});
  if (labels != nullptr && labels->IsObject()) {
    for (const auto& label : labels->GetObject()) {
      if (label.value.IsString()) {
        object.labels[label.name.GetString()] = label.value.GetString();
      }
    }
  }
}

bool IsNumber(std::string_view version) {
  return !version.empty() &&
         std::all_of(version.begin(), version.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string Resource::ApiVersion() const {
  return group.empty() ? std::string(version) : fmt::format("{}/{}", group, version);
}

Result<Object> ReadObject(std::string json, std::string_view what) {
  ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJsonObject(json, what));
  Object object;
  ReadMetadata(document, object);
  if (object.name.empty()) {
    return InvalidArgument(fmt::format("{} has no metadata.name", what));
  }
  object.json = std::move(json);
  return object;
}

Result<ObjectPage> ReadObjectPage(std::string_view json, std::string_view what) {
  ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJsonObject(json, what));
  ObjectPage page;
  page.resource_version = TextIn(document, {"metadata", "resourceVersion"});
  page.next = TextIn(document, {"metadata", "continue"});
  const rapidjson::Value* items = FindIn(document, {"items"});
  // An empty list is `[]`, or `null` from older servers; an object without resourceVersion is not a
  // list.
  if (items == nullptr || page.resource_version.empty()) {
    return InvalidArgument(fmt::format("{} is not a list", what));
  }
  for (const rapidjson::Value& item : ArrayIn(document, {"items"})) {
    Object object;
    ReadMetadata(item, object);
    if (object.name.empty() || object.uid.empty()) {
      return InvalidArgument(fmt::format("{} has an object without name and uid", what));
    }
    object.json = ToJson(item);
    page.objects.push_back(std::move(object));
  }
  return page;
}

int CompareVersions(std::string_view one, std::string_view other) {
  if (!IsNumber(one) || !IsNumber(other)) {
    return 0;
  }
  one.remove_prefix(std::min(one.find_first_not_of('0'), one.size()));
  other.remove_prefix(std::min(other.find_first_not_of('0'), other.size()));
  if (one.size() != other.size()) {
    return one.size() < other.size() ? -1 : 1;
  }
  return one.compare(other);
}

}  // namespace sluice::k8s
