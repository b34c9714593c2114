#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include "k8s/json_internal.h"

namespace sluice::k8s {

// The members of an object, which are texts: labels, a selector, a Secret's data.
inline std::map<std::string, std::string> TextsOf(const rapidjson::Value& object,
                                                  std::initializer_list<std::string_view> path) {
  std::map<std::string, std::string> texts;
  if (const rapidjson::Value* found = FindIn(object, path); found != nullptr && found->IsObject()) {
    for (const auto& member : found->GetObject()) {
      texts[member.name.GetString()] = member.value.IsString() ? member.value.GetString() : "";
    }
  }
  return texts;
}

}  // namespace sluice::k8s
