#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "catalog/job_store.h"
#include "elastic/fleet/throughput_curve.h"

namespace sluice::executor {

// How many workers a job had, when and why: from what was recorded of it. Pure.
struct Allocation {
  int64_t micros = 0;  // since 1970
  int64_t workers = 0;
  std::string reason;  // empty: not known

  bool operator==(const Allocation&) const = default;
};
inline constexpr size_t kMaxAllocations = 20;
// The last kMaxAllocations changes of the number of workers; several within a second are one.
std::vector<Allocation> AllocationsOf(const std::vector<catalog::JobMetric>& metrics,
                                      const std::vector<catalog::JobEvent>& events);

// Rows per second by number of workers, ascending: the median over the seconds during which their
// number stayed the same.
elastic::Throughput ThroughputOf(const std::vector<catalog::JobMetric>& metrics);

// "6 workers: one more added 9 % of the first one's rows"; where the measurements do not reach it:
// "beyond 6 workers"; empty: fewer than two numbers of workers were measured.
std::string DescribeKnee(const elastic::Throughput& throughput);

}  // namespace sluice::executor
