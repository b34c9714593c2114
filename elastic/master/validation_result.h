#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace sluice::elastic {

// The last evaluation's result, and whether its rows were those of the one before. Pure; not
// thread-safe.
class ValidationResult {
 public:
  using Metrics = std::vector<std::pair<std::string, double>>;

  // `checksum`: of the rows of a validation.select; 0: unknown (rows that were split off are
  // checked with the training shards). Aborted: the rows have changed since the last evaluation, or
  // since the checkpoint from which the job resumed, so that the metrics cannot be compared.
  Status Set(Metrics metrics, int64_t rows, uint64_t checksum);
  void Restore(Metrics metrics, int64_t rows, uint64_t checksum);
  // The training begins again: the rows stay the same.
  void ForgetMetrics() { metrics_.clear(); }

  const Metrics& metrics() const { return metrics_; }
  int64_t rows() const { return rows_; }
  uint64_t checksum() const { return checksum_; }

 private:
  Metrics metrics_;
  int64_t rows_ = 0;
  uint64_t checksum_ = 0;
};

}  // namespace sluice::elastic
