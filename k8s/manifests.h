#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace sluice::k8s {

struct ManifestOptions {
  std::string namespace_name = "sluice";
  std::string image;
  std::string pods_allow = {};  // the gateway's option; "": without it
  // Of validation (x-kubernetes-validations), which Kubernetes knows from 1.25; without them the
  // manifests are those for an older one in all respects.
  bool rules = true;
};

// Folders of the two kustomize bases: what a cluster has once, and what each namespace has that
// trains.
inline constexpr char kClusterBase[] = "cluster";
inline constexpr char kGatewayBase[] = "gateway";

// One file of a base.
struct Manifest {
  std::string folder;
  std::string file;  // "gateway.yaml"
  std::string yaml;  // one document or more, each ended by a line
};

// The objects that a cluster needs before it can train. Once: the resource TrainingJob, the
// priority classes, the controller in a namespace of its own, the ClusterRole of gateways that may
// show the whole cluster. In a namespace, and nowhere else: a gateway, accounts and their rights,
// network policies. Everything except the bases' own kustomization.yaml, which list them. An error
// if Kubernetes would not accept a name. Pure.
Result<std::vector<Manifest>> BuildManifests(const ManifestOptions& options);
std::string Kustomization(const std::vector<Manifest>& manifests, const std::string& folder);

// The same objects, except the namespaces, as two Helm charts, in the folders `cluster` and
// `gateway`: the first one is for the namespace kControllerNamespace, the second one for any. Their
// values are `image` and `podsAllow`, by default those of `options`, whose namespace does not
// count. `version`: of the charts. The same errors. Pure.
Result<std::vector<Manifest>> BuildCharts(const ManifestOptions& options,
                                          const std::string& version);

// The CustomResourceDefinition of TrainingJob. `rules`: see ManifestOptions.
std::string TrainingJobDefinition(bool rules);

}  // namespace sluice::k8s
