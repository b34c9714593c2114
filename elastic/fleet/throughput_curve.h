#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace sluice::elastic {

// Rows per second by number of workers, ascending.
using Throughput = std::vector<std::pair<uint32_t, double>>;

// The least concave curve from the origin that is nowhere below these points: its corners. More
// workers neither do less work, nor add more than those before them did; where the points say
// otherwise, that is noise, and would look like a knee. Pure.
Throughput LeastConcave(const Throughput& points);

// How a job's throughput depends on its number of workers, measured while it trains. Not
// thread-safe.
class ThroughputCurve {
 public:
  // Over a second or so, during all of which that many trained.
  void Measure(uint32_t workers, double rows_per_second);
  void Forget() { rates_.clear(); }

  // The least concave curve over what was measured often enough; empty if nothing was.
  Throughput Points() const;

 private:
  struct Rate {
    double rows_per_second = 0;
    int samples = 0;
  };
  std::map<uint32_t, Rate> rates_;  // by number of workers
};

}  // namespace sluice::elastic
