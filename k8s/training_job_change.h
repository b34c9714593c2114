#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/training_job_status.h"

namespace sluice::k8s {

// Changes a status of which parts are written by others: reads it, lets `edit` change it and writes
// what differs; when somebody else has written the object in between, all over again. False: the
// TrainingJob with that uid is gone, or leaving.
using StatusEdit = std::function<void(const Object& object, TrainingJobStatus& status)>;
Result<bool> ChangeTrainingJobStatus(ApiClient& client, const std::string& namespace_name,
                                     const std::string& name, const std::string& uid,
                                     const StatusEdit& edit, const std::stop_token& stop);

}  // namespace sluice::k8s
