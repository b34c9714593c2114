#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::k8s {

// Nobody's objects are deeper (a CustomResourceDefinition's schema is some thirty); what walks a
// document calls itself once for each level.
inline constexpr int kMostJsonDepth = 200;

// `text` as one JSON object; `what` begins the error. Never recurses, never past the limit.
Result<rapidjson::Document> ParseJsonObject(std::string_view text, std::string_view what);

std::string ToJson(const rapidjson::Value& value);

// The value behind the names, from object to object; nullptr where there is none. What has another
// type than the one asked for counts as absent: 0, empty, nullptr.
const rapidjson::Value* FindIn(const rapidjson::Value& value,
                               std::initializer_list<std::string_view> path);
std::string_view TextIn(const rapidjson::Value& value,
                        std::initializer_list<std::string_view> path);
int64_t NumberIn(const rapidjson::Value& value, std::initializer_list<std::string_view> path);
bool TrueIn(const rapidjson::Value& value, std::initializer_list<std::string_view> path);
// The elements; none where there is no array.
rapidjson::Value::ConstArray ArrayIn(const rapidjson::Value& value,
                                     std::initializer_list<std::string_view> path);

// The same for building. `Within` gives the object behind the names, made where it is missing (or
// is something else).
rapidjson::Value& Within(rapidjson::Value& value, std::initializer_list<std::string_view> path,
                         rapidjson::Document::AllocatorType& memory);
rapidjson::Value JsonText(std::string_view text, rapidjson::Document::AllocatorType& memory);
// Replaces the member or adds it.
void SetMember(rapidjson::Value& object, std::string_view name, rapidjson::Value value,
               rapidjson::Document::AllocatorType& memory);

}  // namespace sluice::k8s
