#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "planner/choose.h"

// Shared by choose*.cc.
namespace sluice::planner {

inline uint32_t Unsigned(int64_t value) {
  return static_cast<uint32_t>(value);
}

// Two attributes that exclude each other, reported at one of them.
inline Status Conflict(const AttributeSet& attributes, std::string_view at, std::string message) {
  return InvalidArgument(std::move(message)).At(attributes.SpanOf(at));
}

}  // namespace sluice::planner
