#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "catalog/job_store.h"
#include "catalog/model_store.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

// The version that a job has stored; nullopt: it has stored none, or another one is live by now.
Result<std::optional<catalog::ModelVersion>> StoredBy(const catalog::Job& row,
                                                      catalog::ModelStore& models);

// Which version it is, its rows and weights, and how long its job took.
void FillStored(const catalog::Job& row, const std::optional<catalog::ModelVersion>& stored,
                k8s::TrainingJobStatus& status);

}  // namespace sluice::executor
