#include "models/networks/id_factors.h"

#include <cmath>

namespace sluice::models {

void IdFactors(std::string_view combiner, size_t rows, std::span<const uint32_t> ends,
               std::span<const float> weights, std::vector<float>* factors) {
  factors->clear();
  if (weights.empty() && (combiner == "sum" || ends.empty())) {
    return;
  }
  size_t begin = 0;
  for (size_t row = 0; row < rows; ++row) {
    const size_t end = ends.empty() ? row + 1 : ends[row];
    float sum = 0;
    float squares = 0;
    for (size_t i = begin; i < end; ++i) {
      const float weight = weights.empty() ? 1.0F : weights[i];
      factors->push_back(weight);
      sum += weight;
      squares += weight * weight;
    }
    const float divisor =
        combiner == "mean" ? sum : (combiner == "sqrtn" ? std::sqrt(squares) : 1.0F);
    const float scale = divisor == 0 ? 0.0F : 1.0F / divisor;
    for (size_t i = begin; i < end; ++i) {
      (*factors)[i] *= scale;
    }
    begin = end;
  }
}

}  // namespace sluice::models
