#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace sluice::models {

// FNV-1a over words of eight bytes: detects torn or swapped chunks, at memory speed.
inline uint64_t ChecksumOf(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325u;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  for (; i < bytes.size(); ++i) {
    hash = (hash ^ static_cast<unsigned char>(bytes[i])) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace sluice::models
