#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::k8s {

struct ManifestOptions {
  std::string namespace_name = "sluice";
  std::string image;
  std::string pods_allow = {};  // the gateway's option; "": without it
  bool rules = true;  // of validation (x-kubernetes-validations), which Kubernetes knows from 1.25
};

// One file of a kustomize base.
struct Manifest {
  std::string file;  // "gateway.yaml"
  std::string yaml;  // one document or more, each ended by a line
};

// The objects that a cluster needs before it can train: the resource TrainingJob, the accounts and
// their rights, the priority classes, network policies, a gateway, a controller. Everything except
// the base's own kustomization.yaml, which lists them. An error if Kubernetes would not accept a
// name. Pure.
Result<std::vector<Manifest>> BuildManifests(const ManifestOptions& options);
std::string Kustomization(const std::vector<Manifest>& manifests,
                          const std::string& namespace_name);

// The CustomResourceDefinition of TrainingJob. `rules`: see ManifestOptions.
std::string TrainingJobDefinition(bool rules);

}  // namespace sluice::k8s
