#pragma once

#include <cstdint>
#include <span>

namespace sluice::elastic {

// The upper half of a float: its range, and 8 bits of its precision. Infinities and NaNs are
// preserved. The same bits on every machine.

// Rounds to the nearest, ties to even. `to` has the same size.
void NarrowToBfloat16(std::span<const float> from, uint16_t* to);
// `from` has the same size.
void WidenBfloat16(const uint16_t* from, std::span<float> to);

}  // namespace sluice::elastic
