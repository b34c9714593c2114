#pragma once

#include <cstdint>
#include <span>

namespace sluice::elastic {

// A float's upper half: its range, and 8 bits of its precision. Infinities stay infinities, and
// what is not a number stays that. The same bits on every machine.

// Rounds to the nearest, ties to even. `to` has room for as many.
void NarrowToBfloat16(std::span<const float> from, uint16_t* to);
// `from` has as many.
void WidenBfloat16(const uint16_t* from, std::span<float> to);

}  // namespace sluice::elastic
