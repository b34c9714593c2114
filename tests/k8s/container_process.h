#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "k8s/api_client.h"
#include "k8s/object.h"

// How a pod's JSON becomes a process of this machine, without namespaces of its own.
namespace sluice::k8s {

// Folders of this machine by the path at which our container mounts them.
using Mounts = std::map<std::string, std::string>;

// Makes a folder below `folder` for each of the pod's volumes, with the content of its Secret.
// nullopt: a Secret does not exist yet.
std::optional<Mounts> MountVolumes(ApiClient& client, const Object& pod, const std::string& folder,
                                   const std::stop_token& stop);

struct ContainerProcess {
  std::string binary;
  std::vector<std::string> arguments, variables;
};

// What only the kubelet knows of a pod.
struct PodPlace {
  std::string address, node;
  std::string kubeconfig;  // names the API server
};

// The process of the pod's container of ours, which is `binary`: with its arguments and variables,
// in which mounts, addresses and names are this machine's. Of a pod without it: one that sleeps.
ContainerProcess ProcessOf(const Object& pod, const Mounts& mounts, const std::string& binary,
                           const PodPlace& place);

// Its number; its output is appended to `log`. It dies with this thread, whatever happens to the
// test.
int Spawn(ContainerProcess process, const std::string& log);

}  // namespace sluice::k8s
