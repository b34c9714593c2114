#pragma once

#include "base/status.h"
#include "k8s/training_job.h"
#include "k8s/training_job_status.h"

namespace sluice::executor {

// What a TrainingJob's status keeps of the spec with which it is begun or refused.
k8s::BegunSpec BegunSpecOf(const k8s::TrainingJobSpec& spec);

// What holds of a spec that was changed after that: the source with which it was begun. Adds to
// `mistakes` what was changed without effect; the statement itself is not kept. Pure.
void HoldToBegun(const k8s::BegunSpec& begun, k8s::TrainingJobSpec& spec, Status* mistakes);

}  // namespace sluice::executor
