#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::executor {

// A piece of work that begins now.
struct LaneTurn {
  size_t item = 0;
  double share = 1;    // of the remaining time, if all waiting work shares it equally
  bool first = false;  // the first of `parallel`, or of `single` if that is empty
};

// Does all the work, two pieces at a time: work that uses one processor (`single`) next to work
// that uses several (`parallel`), each in its order; a lane that has run out of its own work takes
// `single`. On a machine with one processor, one piece at a time, `parallel` first. `work` is
// called from two threads, must not throw, and checks itself whether to stop.
void RunLanes(const std::vector<size_t>& parallel, const std::vector<size_t>& single,
              const std::function<void(const LaneTurn&)>& work);

}  // namespace sluice::executor
