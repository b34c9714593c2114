#include "elastic/parameters/bfloat16.h"

#include <bit>

namespace sluice::elastic {

void NarrowToBfloat16(std::span<const float> from, uint16_t* to) {
  constexpr uint32_t kExponent = 0x7F800000, kQuiet = 0x00400000;
  for (size_t i = 0; i < from.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(from[i]);
    const uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    // Rounding would turn some NaNs into an infinity or change the sign.
    const uint32_t nan = bits | kQuiet;
    const bool is_nan = (bits & 0x7FFFFFFF) > kExponent;
    to[i] = static_cast<uint16_t>((is_nan ? nan : rounded) >> 16);
  }
}

void WidenBfloat16(const uint16_t* from, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
  }
}

}  // namespace sluice::elastic
