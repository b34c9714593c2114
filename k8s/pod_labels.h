#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "elastic/fleet/fleet.h"
#include "k8s/object.h"

namespace sluice::k8s {

// Labels of our pods, by which a later master finds them: the job's pods have its uid.
inline constexpr std::string_view kJobLabel = "training.sluice/job";
inline constexpr std::string_view kRoleLabel = "training.sluice/role";
inline constexpr std::string_view kIncarnationLabel = "training.sluice/incarnation";
inline constexpr std::string_view kServerLabel = "training.sluice/server";
// For people: the name of its TrainingJob, where a label can hold it.
inline constexpr std::string_view kNameLabel = "training.sluice/name";
inline constexpr size_t kLongestLabel = 63;

// The process of a job that a pod runs.
struct PodIdentity {
  std::string job_uid;
  elastic::Role role = elastic::Role::kWorker;
  elastic::Incarnation incarnation = elastic::kNoIncarnation;
  elastic::ServerId server_index = elastic::ServerId::First();

  bool operator==(const PodIdentity&) const = default;
};
std::map<std::string, std::string> LabelsOf(const PodIdentity& identity);
// nullopt: the labels are not ours, or damaged.
std::optional<PodIdentity> IdentityOf(const std::map<std::string, std::string>& labels);

// kJobLabel of the pods of a TrainingJob: a label of its own if a statement has made it, or its
// uid.
std::string JobUidOf(const Object& training_job);

}  // namespace sluice::k8s
