#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "catalog/job_store.h"

namespace sluice::catalog {

class CatalogQuery;

// What jobs leave behind while they run, their events and their metrics, over either database, as
// JobStore describes them. Thread-safe.
class SqlJobHistory {
 public:
  // `query` must outlive this object.
  explicit SqlJobHistory(CatalogQuery& query) : query_(query) {}

  Status AddEvents(int64_t job, const std::vector<JobEvent>& events);
  Status AddMetrics(int64_t job, const std::vector<JobMetric>& metrics);
  Status ThinMetrics(int64_t job, int64_t most);
  Result<std::vector<JobEvent>> Events(int64_t job, int64_t skip);
  Result<std::vector<JobMetric>> Metrics(int64_t job);

 private:
  CatalogQuery& query_;
};

}  // namespace sluice::catalog
