#include "catalog/store/sql_job_history.h"

#include <cmath>
#include <limits>

#include "catalog/sql/sql_session.h"
#include "catalog/store/catalog_query_internal.h"

namespace sluice::catalog {

Status SqlJobHistory::AddEvents(int64_t job, const std::vector<JobEvent>& events) {
  std::vector<std::vector<SqlParameter>> rows;
  rows.reserve(events.size());
  for (const JobEvent& event : events) {
    rows.push_back({job, event.micros, event.kind, event.detail});
  }
  return query_.Insert("{job_events} (job_id, micros, kind, detail)", rows);
}

Status SqlJobHistory::AddMetrics(int64_t job, const std::vector<JobMetric>& metrics) {
  std::vector<std::vector<SqlParameter>> rows;
  rows.reserve(metrics.size());
  for (const JobMetric& metric : metrics) {
    rows.push_back({job, metric.micros, metric.step, metric.name, metric.value});
  }
  return query_.Insert("{job_metrics} (job_id, micros, step, name, value)", rows);
}

Status SqlJobHistory::ThinMetrics(int64_t job, int64_t most) {
  return query_
      .Ask(
          "DELETE FROM {job_metrics} WHERE job_id = $1 AND position IN"
          " (SELECT position FROM (SELECT position,"
          " row_number() OVER (PARTITION BY name ORDER BY position) AS place,"
          " count(*) OVER (PARTITION BY name) AS points"
          " FROM {job_metrics} WHERE job_id = $1) AS numbered"
          " WHERE points >= $2 AND place % 2 = 0 AND place < points)",
          {job, most})
      .status();
}

Result<std::vector<JobEvent>> SqlJobHistory::Events(int64_t job, int64_t skip) {
  ASSIGN_OR_RETURN(const SqlRows rows,
                   query_.Ask("SELECT micros, kind, detail FROM {job_events} WHERE job_id = $1"
                              " ORDER BY position LIMIT $2 OFFSET $3",
                              {job, std::numeric_limits<int64_t>::max(), skip}));
  std::vector<JobEvent> events;
  events.reserve(rows.size());
  for (const std::vector<Value>& row : rows) {
    events.push_back({IntegerCell(row[0]), TextCell(row[1]), TextCell(row[2])});
  }
  return events;
}

Result<std::vector<JobMetric>> SqlJobHistory::Metrics(int64_t job) {
  ASSIGN_OR_RETURN(
      const SqlRows rows,
      query_.Ask("SELECT micros, step, name, value FROM {job_metrics} WHERE job_id = $1"
                 " ORDER BY position",
                 {job}));
  std::vector<JobMetric> metrics;
  metrics.reserve(rows.size());
  for (const std::vector<Value>& row : rows) {
    metrics.push_back(
        {IntegerCell(row[0]), IntegerCell(row[1]), TextCell(row[2]),
         IsNull(row[3]) ? std::nan("") : DoubleCell(row[3])});  // SQLite stores NaN as NULL
  }
  return metrics;
}

}  // namespace sluice::catalog
