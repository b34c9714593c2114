#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "k8s/object.h"
#include "k8s/pod_request.h"

namespace sluice::k8s {

// Labels of our pods, by which a later master finds them: those of the job have its uid.
inline constexpr std::string_view kJobLabel = "training.sluice/job";
inline constexpr std::string_view kRoleLabel = "training.sluice/role";
inline constexpr std::string_view kIncarnationLabel = "training.sluice/incarnation";
inline constexpr std::string_view kServerLabel = "training.sluice/server";

// Where a pod finds what it has to know: the files `config` and `secret`.
inline constexpr std::string_view kProcessFolder = "/var/run/sluice/process";
// Variables of a pod: its address, its node, and its number (kIncarnationLabel). Its process gets
// them as arguments, behind the role and that folder.
inline constexpr std::string_view kAddressVariable = "SLUICE_POD_IP";
inline constexpr std::string_view kNodeVariable = "SLUICE_NODE";
inline constexpr std::string_view kIncarnationVariable = "SLUICE_INCARNATION";

// Whom a pod, or its Secret, goes with when it is deleted.
struct Owner {
  std::string api_version, kind, name, uid;
};

// Which process of a job a pod is.
struct PodIdentity {
  std::string job_uid;
  elastic::Role role = elastic::Role::kWorker;
  elastic::Incarnation incarnation = elastic::kNobody;
  uint32_t server_index = 0;
};
std::map<std::string, std::string> LabelsOf(const PodIdentity& identity);
// nullopt: the labels are none of ours, or damaged.
std::optional<PodIdentity> IdentityOf(const std::map<std::string, std::string>& labels);

// What every pod of a job has.
struct PodShape {
  std::string namespace_name;
  Owner owner;
  std::string image;           // by digest, the same for all of a job
  std::string template_json;   // the `template` of a core/v1 PodTemplate; empty: none
  std::string priority_class;  // where `request` asks for none; empty: the template's
  PodRequest request;
  int grace_seconds = 2;
};

// The pod of a process, as JSON. What an administrator's template says stays: affinity,
// tolerations, sidecars, pull secrets, service account, labels, volumes, security; ours is what the
// protocol needs: name, our labels, owner, image, arguments, resources, the mounted Secret, no
// restarts, a grace of at least a second, last words, and no API token but in a master. What the
// statement asks for comes before the template, but a process that was given more memory keeps it.
// Where nobody says anything: not root, a read-only root file system, no capabilities, servers
// apart by node. An error where the template is none.
Result<std::string> BuildPod(const PodShape& shape, const PodIdentity& identity,
                             const elastic::ProcessSpec& spec, const std::string& secret_name);

// The Secret that such a pod mounts. kResourceExhausted where it would be larger than Kubernetes
// stores.
Result<std::string> BuildSecret(const PodShape& shape, const PodIdentity& identity,
                                const elastic::ProcessSpec& spec, const std::string& secret_name);
// Whether the template gives our container a volume that the folder lies in.
bool MountsFolder(std::string_view template_json, std::string_view folder);
// The `template` of an administrator's PodTemplate, for PodShape.
Result<std::string> TemplateOf(const Object& pod_template);
// By what is in it: the same for the same process, another for each other one.
std::string SecretName(const elastic::ProcessSpec& spec);

}  // namespace sluice::k8s
