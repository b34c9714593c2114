#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::models {

// The factor of each id where those of a row are combined: its weight, divided by the sum of the
// row's weights
// ("mean"), by the root of the sum of their squares ("sqrtn"), or not ("sum"). Weights that sum to
// zero have no mean: the row counts as empty. `ends` and `weights` as in IdSlot. Empty: all factors
// are 1.
void IdFactors(std::string_view combiner, size_t rows, std::span<const uint32_t> ends,
               std::span<const float> weights, std::vector<float>* factors);

}  // namespace sluice::models
