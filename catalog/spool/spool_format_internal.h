#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/value.h"

// The file: blocks, then for each block where it begins (u64), then how many blocks there are
// (u64) and kSpoolMark. Numbers in native byte order: only this machine reads it.
//   a block:  rows (u64), for each column where it begins, counted from the block's beginning
//             (u64), and where the last one ends; then the columns
//   a column: a byte for each row (1: NULL), then 8 bytes for each row: the number, or where the
//             text ends, counted from the first text; then the texts
namespace sluice::catalog {

inline constexpr uint64_t kSpoolMark = 0x736c75696365'0001;  // "sluice", version 1

inline void AppendNumber(std::string& out, uint64_t number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  out.append(bytes, sizeof(number));
}

inline uint64_t NumberAt(const char* bytes) {
  uint64_t number = 0;
  std::memcpy(&number, bytes, sizeof(number));
  return number;
}

inline bool HasTexts(DataType type) {
  return type == DataType::kText || type == DataType::kBytes;
}

// Where spools are, for a folder that may be "".
std::string SpoolFolder(const std::string& folder);
inline constexpr const char* kSpoolPrefix = "sluice_spool_";

}  // namespace sluice::catalog
