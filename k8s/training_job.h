#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/object.h"
#include "k8s/pod_request.h"
#include "k8s/pod_spec.h"

namespace sluice::k8s {

inline constexpr Resource kTrainingJobs{"training.sluice", "v1alpha1", "trainingjobs"};
inline constexpr std::string_view kTrainingJobKind = "TrainingJob";

// A Secret is read for a TrainingJob only if its label says `sluice.dev/source: "true"`: whoever
// may create TrainingJobs is not thereby given the other Secrets of the namespace.
inline constexpr std::string_view kSourceLabel = "sluice.dev/source";

// A TrainingJob's settings for the processes of one role.
struct ProcessesSpec {
  std::optional<uint32_t> min, max;  // absent: the statement's; for a master: one
  PodResources resources;
  PodPriority priority;
  std::string template_name;  // a core/v1 PodTemplate; empty: the job's

  bool operator==(const ProcessesSpec&) const = default;
};

struct TrainingJobSpec {
  std::string statement;
  std::string source_secret;          // the Secret with the data source's URL
  std::string source_key = "source";  // its key
  ProcessesSpec master, workers, servers;
  int32_t priority = 0;  // relative to other jobs, like engine.priority
  std::string template_name;
  std::string image;  // by digest; empty: that of the process that starts its master
  std::string pull_policy;
  std::vector<PodVolume> volumes;
  bool suspend = false;
  std::optional<int64_t> active_deadline_seconds, ttl_seconds_after_finished;

  bool operator==(const TrainingJobSpec&) const = default;
};

// Pure. Every mistake is one diagnostic that begins with its field: "spec.workers.min: ...".
Result<TrainingJobSpec> ParseTrainingJobSpec(std::string_view json);
// What holds of a spec with mistakes, which are added to `mistakes`: its parts without any; the
// others are as in `last`, which held before; nullopt: as if they were not given. Pure.
TrainingJobSpec HoldingSpec(std::string_view json, const std::optional<TrainingJobSpec>& last,
                            Status* mistakes);

// The object to be created, without the parts of its spec that others fill in. Pure.
std::string BuildTrainingJob(const std::string& namespace_name, const std::string& name,
                             const TrainingJobSpec& spec,
                             const std::map<std::string, std::string>& labels = {});

// As the owner of its job's objects, and as what an Event is about.
Owner TrainingJobOwner(const std::string& name, const std::string& uid);
// How often its spec was changed (metadata.generation); 0: not known.
int64_t GenerationOf(const Object& training_job);

// Which gateway has begun it, or is about to; empty: none.
std::string ClaimOf(const Object& training_job);
// The same object, claimed for `holder` if it has been claimed by `before` (empty: unclaimed);
// unchanged if another has claimed it. Pure.
Result<std::string> Claim(const Object& training_job, std::string_view before,
                          std::string_view holder);

}  // namespace sluice::k8s
