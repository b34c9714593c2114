#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::models {

// What a name that is no model type may have been meant for: a misspelling of ours or of one in
// `brought`, the user's own, or what other libraries call it. Thread-safe.
struct MeantType {
  std::optional<std::string> name;  // of the type that does the same here
  std::string hint;
};
MeantType WhatTypeIsMeant(std::string_view name, const std::vector<std::string>& brought);

}  // namespace sluice::models
