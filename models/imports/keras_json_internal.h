#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// What is read of the JSON that Keras writes. Nothing in it is taken on trust.
namespace sluice::models::keras {

using Json = rapidjson::Value;

// Refuses what is too deep or too long before it becomes a tree; errors have their place.
Status ParseJson(std::string_view text, rapidjson::Document* document);

// The member of an object; null (of JSON) where there is none.
const Json& Member(const Json& object, const char* name);
// Where the member is there and not null.
bool Has(const Json& object, const char* name);
std::string Text(const Json& object, const char* name, std::string_view otherwise = "");
bool Flag(const Json& object, const char* name, bool otherwise);
double Number(const Json& object, const char* name, double otherwise);
// A whole number within [least, most], or a list that holds one such; the error names the layer.
Result<int64_t> Whole(const Json& config, const char* name, int64_t least, int64_t most,
                      std::optional<int64_t> otherwise = std::nullopt);
// Numbers of a list; null is -1. nullopt: it is no such list.
std::optional<std::vector<int64_t>> Extents(const Json& list);

}  // namespace sluice::models::keras
