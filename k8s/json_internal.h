#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::k8s {

// No real object is deeper (a CustomResourceDefinition's schema has some thirty levels); code that
// walks a document recurses once per level.
inline constexpr int kMaxJsonDepth = 200;

// `text` as one JSON object; `what` begins the error. Never recurses, and respects the limit.
Result<rapidjson::Document> ParseJsonObject(std::string_view text, std::string_view what);

std::string ToJson(const rapidjson::Value& value);

// The value found by following the names from object to object; nullptr if there is none. A value
// of another type than requested counts as absent: 0, empty, nullptr.
const rapidjson::Value* FindIn(const rapidjson::Value& value,
                               std::initializer_list<std::string_view> path);
std::string_view TextIn(const rapidjson::Value& value,
                        std::initializer_list<std::string_view> path);
int64_t NumberIn(const rapidjson::Value& value, std::initializer_list<std::string_view> path);
bool TrueIn(const rapidjson::Value& value, std::initializer_list<std::string_view> path);
// The elements; empty if there is no array.
rapidjson::Value::ConstArray ArrayIn(const rapidjson::Value& value,
                                     std::initializer_list<std::string_view> path);

// The same for building. `Within` returns the object found by following the names, created if it is
// missing (or is something else).
rapidjson::Value& Within(rapidjson::Value& value, std::initializer_list<std::string_view> path,
                         rapidjson::Document::AllocatorType& memory);
rapidjson::Value JsonText(std::string_view text, rapidjson::Document::AllocatorType& memory);
// Replaces the member or adds it.
void SetMember(rapidjson::Value& object, std::string_view name, rapidjson::Value value,
               rapidjson::Document::AllocatorType& memory);

}  // namespace sluice::k8s
