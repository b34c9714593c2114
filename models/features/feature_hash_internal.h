#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/mix_bits.h"

// Text as two machine words plus a 64-bit hash, in the manner of wyhash (public domain): short
// texts are read whole, without a loop. Inline because vocabulary look-ups are the hot path of
// Apply.
namespace sluice::models {

static_assert(std::endian::native == std::endian::little, "hashes are stored with models");

constexpr uint64_t kHashSeed = 0xa0761d6478bd642f;
constexpr uint64_t kHashMix = 0xe7037ed1a0b428db;

inline uint64_t MixWords(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

inline uint64_t ReadWord8(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}
inline uint64_t ReadWord4(const char* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Longest text that is fully determined by its two words and length.
constexpr size_t kInlineTextBytes = 16;

struct TextWords {
  uint64_t first = 0;
  uint64_t second = 0;
};

// Requires text.size() <= kInlineTextBytes; different texts of the same length have different
// words.
inline TextWords ReadShortText(std::string_view text) {
  const size_t size = text.size();
  const char* bytes = text.data();
  if (size >= 4) {
    const size_t step = (size >> 3) << 2;
    const char* last = bytes + size - 4;
    return {(ReadWord4(bytes) << 32) | ReadWord4(bytes + step),
            (ReadWord4(last) << 32) | ReadWord4(last - step)};
  }
  if (size > 0) {
    const auto byte = [bytes](size_t i) {
      return static_cast<uint64_t>(static_cast<unsigned char>(bytes[i]));
    };
    return {(byte(0) << 16) | (byte(size >> 1) << 8) | byte(size - 1), 0};
  }
  return {};
}

inline uint64_t HashWords(TextWords words, size_t size, uint64_t seed) {
  return MixWords(kHashMix ^ size, MixWords(words.first ^ kHashMix, words.second ^ seed));
}

inline uint64_t HashLongText(std::string_view text) {
  uint64_t seed = kHashSeed;
  const char* bytes = text.data();
  for (size_t left = text.size(); left > 16; left -= 16, bytes += 16) {
    seed = MixWords(ReadWord8(bytes) ^ kHashMix, ReadWord8(bytes + 8) ^ seed);
  }
  const char* end = text.data() + text.size();
  return HashWords({ReadWord8(end - 16), ReadWord8(end - 8)}, text.size(), seed);
}

inline uint64_t HashTextInline(std::string_view text) {
  return text.size() <= kInlineTextBytes ? HashWords(ReadShortText(text), text.size(), kHashSeed)
                                         : HashLongText(text);
}

// 0 does not map to 0.
inline uint64_t HashIntegerInline(uint64_t value) {
  return MixBits(value + 0x9e3779b97f4a7c15);
}

}  // namespace sluice::models
