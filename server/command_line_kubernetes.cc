#include <CLI/CLI.hpp>

#include "server/command_line_internal.h"
#include "server/commands.h"

namespace sluice::server {
namespace {

void AddK8s(CLI::App& app, CommandLine& line) {
  CLI::App* k8s = app.add_subcommand("k8s", "Training on Kubernetes");
  k8s->require_subcommand(1);
  CLI::App* manifests = k8s->add_subcommand(
      "manifests", "Print what a cluster needs: TrainingJob, accounts, classes, gateway");
  line.manifests.namespace_name = "sluice";
  manifests->add_option("--namespace", line.manifests.namespace_name, "of all of it")
      ->capture_default_str();
  manifests->add_option("--image", line.manifests.image, "of every pod (default: sluice:VERSION)");
  manifests->add_option("--pods-allow", line.manifests.pods_allow,
                        "what statements may put into their pods (see serve)");
  manifests->add_flag("--without-rules", line.manifests.without_rules,
                      "for Kubernetes before 1.25, whose kubectl refuses rules of validation");
  manifests->add_option("--into", line.manifests.folder,
                        "write a base of kustomize into this folder instead");
  manifests->add_flag("--charts", line.manifests.charts,
                      "write two Helm charts into that folder, with the same objects");
  manifests->callback([&line] { line.run = [&line] { return RunK8sManifests(line.manifests); }; });
}

void AddController(CLI::App& app, CommandLine& line) {
  CLI::App* controller = app.add_subcommand(
      "controller", "Shares a Kubernetes cluster's idle capacity among all TrainingJobs");
  AddConfigFile(*controller, line.common);
  AddConfigFlag(*controller, "--namespace", "pods_namespace",
                "of its Lease (else our own, or the kubeconfig's)", line.common);
  AddConfigFlag(*controller, "--metrics", "metrics",
                "HOST:PORT where Prometheus reads GET /metrics (nowhere)", line.common);
  AddLog(*controller, line.common);
  controller->callback([&line] {
    line.run = [&line] {
      return WithConfig(line.common, [](const Config& config) { return RunController(config); });
    };
  });
}

}  // namespace

void AddKubernetes(CLI::App& app, CommandLine& line) {
  AddController(app, line);
  AddK8s(app, line);
}

}  // namespace sluice::server
