#pragma once

#include <cstdint>
#include <vector>

namespace sluice::elastic {

// Early stopping keeps exactly the weights that an evaluation has judged, not later ones: this
// identifies them.
struct KeepOrder {
  // Grows from order to order of one job: the epoch that was judged; in all-reduce the steps that
  // were closed. An order that has already been carried out is ignored.
  int64_t number = 0;
  // By partition: the version that was judged. Empty: judged by the training loss, with no training
  // since.
  std::vector<int64_t> versions;
  bool operator==(const KeepOrder&) const = default;
};

}  // namespace sluice::elastic
