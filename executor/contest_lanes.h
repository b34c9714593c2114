#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::executor {

// A piece of work that begins now.
struct LaneTurn {
  size_t item = 0;
  double share = 1;    // of the time that is left, where all that waits is to have the same
  bool first = false;  // of `parallel`, or where that is empty of `single`
};

// Does all of it, two pieces at a time: what takes one processor (`single`)
// beside what takes several (`parallel`), each in its order; whoever has
// nothing left of his own helps with `single`. One at a time, `parallel` first,
// on a machine with one processor. `work` is called from two threads and must
// not throw; it sees for itself whether it is to stop.
void RunLanes(const std::vector<size_t>& parallel, const std::vector<size_t>& single,
              const std::function<void(const LaneTurn&)>& work);

}  // namespace sluice::executor
