#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

struct FuzzTarget {
  const char* name;
  int (*run)(const uint8_t* data, size_t size);
};

// Those that tests/fuzz/CMakeLists.txt lists.
std::span<const FuzzTarget> FuzzTargets();
