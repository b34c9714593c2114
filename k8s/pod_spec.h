#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "elastic/fleet/fleet.h"
#include "k8s/object.h"
#include "k8s/pod_labels.h"
#include "k8s/pod_request.h"

namespace sluice::k8s {

// Where a pod finds its configuration: the files `config` and `secret`.
inline constexpr std::string_view kProcessFolder = "/var/run/sluice/process";
// Variables of a pod. Its process has as arguments: its role, that folder, these two, its name, and
// its number (a server's index, the incarnation of a worker or master).
inline constexpr std::string_view kAddressVariable = "SLUICE_POD_IP";
inline constexpr std::string_view kNodeVariable = "SLUICE_NODE";

// The owner with which a pod, or its Secret, is deleted.
struct Owner {
  std::string api_version, kind, name, uid;
};

// A master that is evicted may have to wait for the next one, whose node may first have to fetch
// the image.
inline constexpr int kMasterGraceSeconds = 120;
// Of a parameter server that is evicted: others get the only copies that it has.
inline constexpr int kServerGraceSeconds = 120;

// What all pods of a job have in common.
struct PodShape {
  std::string namespace_name;
  Owner owner;
  std::string training_job;    // its name; empty: none
  std::string image;           // by digest, the same for the whole job
  std::string template_json;   // the `template` of a core/v1 PodTemplate; empty: none
  std::string priority_class;  // if `request` has none; empty: the template's
  PodRequest request;
  std::vector<std::string> avoided_nodes;  // where it is not placed if there is room elsewhere
  std::vector<std::string> worker_nodes;   // where workers had better be placed
  int grace_seconds = 2;                   // of workers
};

// The pod of a process, as JSON. The administrator's template is kept: affinity, tolerations,
// sidecars, pull secrets, service account, labels, volumes, security. Ours is what the protocol
// needs: name, our labels, owner, image, arguments, resources, the mounted Secret, no restarts, a
// grace period of at least a second, the termination message, and no API token except in a master.
// The statement's requests override the template, but a process that was given more memory keeps
// it. Defaults: not root, a read-only root file system, no capabilities, servers on separate nodes.
// An error if the template is invalid.
Result<std::string> BuildPod(const PodShape& shape, const PodIdentity& identity,
                             const elastic::ProcessSpec& spec, const std::string& secret_name);

// The Secret that such pods mount. kResourceExhausted if it is larger than Kubernetes stores.
Result<std::string> BuildSecret(const PodShape& shape, const PodIdentity& identity,
                                const elastic::ProcessSpec& spec, const std::string& secret_name);
// Derived from role and content: processes that differ in neither share one Secret.
std::string SecretName(const elastic::ProcessSpec& spec);

}  // namespace sluice::k8s
