#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

// The Service of a job: leads to its newest master, ready or not, and carries the data needed to
// create the next one. Its owner is the job's TrainingJob, as for all objects of the job.
struct JobService {
  std::string namespace_name;
  std::string name;
  std::string job_uid;
  std::string secret;  // mounted by the masters
  std::string image;
  int64_t job_number = 0;
  int64_t master = 0;  // the number (kIncarnationLabel) of the current master; 0: none yet
  int port = 0;
  Owner owner = {};  // with which it is deleted; none: it is the root
};
std::string BuildJobService(const JobService& service);
// nullopt: it is not ours, or damaged.
std::optional<JobService> ReadJobService(const Object& object);
// The same Service, leading to that master; unchanged if it already leads to that or a later one.
Result<std::string> LeadTo(const Object& object, int64_t master);
// "10.96.0.7:7077", "[fd00::7]:7077". An error if it has no address.
Result<std::string> ServiceAddress(const Object& object);

}  // namespace sluice::k8s
