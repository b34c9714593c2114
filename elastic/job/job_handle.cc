#include "elastic/job/job_handle.h"

#include "elastic/master/parameter_fleet.h"

namespace sluice::elastic {

Status JobHandle::SetParameterServers(uint32_t servers) {
  const MutexLock lock(mutex_);
  if (parameters_ == nullptr) {
    return FailedPrecondition("the job does not run on parameter servers now");
  }
  parameters_->SetServers(servers);
  return Status();
}

void JobHandle::Attach(ParameterFleet* parameters) {
  const MutexLock lock(mutex_);
  parameters_ = parameters;
}

}  // namespace sluice::elastic
