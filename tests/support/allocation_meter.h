#pragma once

#include <cstddef>

namespace sluice {

// What the program takes from operator new, which a test binary that links this file replaces.
// Measures from its construction on, all threads together; one at a time.
class AllocationMeter {
 public:
  AllocationMeter();
  // The most bytes held at once beyond those that were held at the beginning.
  size_t Peak() const;

 private:
  size_t before_ = 0;
};

}  // namespace sluice
