#pragma once

#include <cstdint>
#include <vector>

namespace sluice::elastic {

// Early stopping keeps the weights that an evaluation has judged, and no later moment's: this says
// which they are.
struct KeepOrder {
  // Grows from order to order of one job: the epoch that was judged; in all-reduce the steps that
  // were closed. Who has carried it out does nothing when it is said again.
  int64_t number = 0;
  // By partition: the version that was judged. Empty: the training loss judged, and nobody has
  // trained since.
  std::vector<int64_t> versions;
  bool operator==(const KeepOrder&) const = default;
};

}  // namespace sluice::elastic
