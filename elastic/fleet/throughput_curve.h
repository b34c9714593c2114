#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace sluice::elastic {

// Rows per second by number of workers, ascending.
using Throughput = std::vector<std::pair<uint32_t, double>>;

// The corners of the least concave curve that starts at the origin and is nowhere below these
// points (the upper hull, by Andrew's monotone chain, 1979). It never falls, and each further
// worker adds at most as much as the one before it; measurements that say otherwise are noise, and
// would look like a knee. Pure.
Throughput LeastConcave(const Throughput& points);

// How a job's throughput depends on its number of workers, measured while it trains. Not
// thread-safe.
class ThroughputCurve {
 public:
  // The rate (above 0) of the last second or so, and how many workers train; once a second or so.
  // The first ones of another number of workers do not count: rates are averages that lag, and a
  // new worker has to open its connection first. Both would look like a knee.
  void Measure(uint32_t workers, double rows_per_second);
  void Forget() { *this = {}; }

  // The least concave curve over what was measured often enough; empty if nothing was.
  Throughput Points() const;
  // The smallest number of workers that was measured so; 0: none was.
  uint32_t Fewest() const;

 private:
  struct Rate {
    double rows_per_second = 0;
    int samples = 0;
  };
  std::map<uint32_t, Rate> rates_;  // by number of workers
  uint32_t workers_ = 0;            // of the last measurement
  int settling_ = 0;                // measurements that do not count
};

}  // namespace sluice::elastic
