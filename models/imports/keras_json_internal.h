#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

// Readers for Keras's JSON, which is not trusted.
namespace sluice::models::keras {

using Json = rapidjson::Value;

// Refuses text that is too deep or too long before parsing; errors have their position.
Status ParseJson(std::string_view text, rapidjson::Document* document);

// The member of an object; JSON null if there is none.
const Json& Member(const Json& object, const char* name);
// Whether the member exists and is not null.
bool Has(const Json& object, const char* name);
std::string Text(const Json& object, const char* name, std::string_view otherwise = "");
bool Flag(const Json& object, const char* name, bool otherwise);
double Number(const Json& object, const char* name, double otherwise);
// An integer in [least, most], or a list with one of them; the error names the layer.
Result<int64_t> Whole(const Json& config, const char* name, int64_t least, int64_t most,
                      std::optional<int64_t> otherwise = std::nullopt);
// The numbers of a list; null becomes -1. nullopt: not a list of numbers.
std::optional<std::vector<int64_t>> Extents(const Json& list);

}  // namespace sluice::models::keras
