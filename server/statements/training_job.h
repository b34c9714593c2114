#pragma once

#include <cstdint>

#include "base/status.h"

namespace sluice::executor {
class Cluster;
struct TrainingJobRequest;
}  // namespace sluice::executor

namespace sluice::server {

// Begins what a TrainingJob asks for, as the login of its source would: plans its statement, in
// which what the rest of the spec says is added where the statement does not say it itself. Answers
// with the job's number, which runs on the cluster's pods. Errors have their places in the
// statement.
Result<int64_t> BeginTrainingJob(executor::Cluster& cluster,
                                 const executor::TrainingJobRequest& request);

}  // namespace sluice::server
