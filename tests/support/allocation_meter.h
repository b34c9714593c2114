#pragma once

#include <cstddef>

namespace sluice {

// Measures memory from operator new, which a test binary that links this file replaces: from
// construction on, for all threads together. One meter at a time.
class AllocationMeter {
 public:
  AllocationMeter();
  // The largest number of bytes held at once, beyond those held at the beginning.
  size_t Peak() const;

 private:
  size_t before_ = 0;
};

}  // namespace sluice
