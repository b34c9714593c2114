#include "executor/pods/stored_model.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::executor {

Result<std::optional<catalog::ModelVersion>> StoredBy(const catalog::Job& row,
                                                      catalog::ModelStore& models) {
  std::optional<catalog::ModelVersion> stored;
  if (row.state != catalog::JobState::kSucceeded) {
    return stored;
  }
  ASSIGN_OR_RETURN(std::vector<catalog::ModelVersion> live, models.List());
  const auto found = std::find_if(live.begin(), live.end(),
                                  [&](const auto& model) { return model.job == row.id; });
  if (found != live.end()) {
    stored = std::move(*found);
  }
  return stored;
}

void FillStored(const catalog::Job& row, const std::optional<catalog::ModelVersion>& stored,
                k8s::TrainingJobStatus& status) {
  status.seconds = std::max<int64_t>(0, row.finished_micros - row.started_micros) / 1'000'000;
  if (stored) {
    status.version = stored->version;
    status.rows = stored->rows;
    status.sha256 = stored->weights_sha256;
  }
}

}  // namespace sluice::executor
