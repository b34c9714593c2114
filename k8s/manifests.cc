#include "k8s/manifests.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "k8s/controller.h"
#include "k8s/manifest_texts_internal.h"
#include "k8s/pod_request.h"
#include "k8s/rights.h"

namespace sluice::k8s {
namespace {

std::string Filled(std::string_view text,
                   const std::vector<std::pair<std::string_view, std::string>>& words) {
  std::string filled(text);
  for (const auto& [word, value] : words) {
    for (size_t at = filled.find(word); at != std::string::npos;
         at = filled.find(word, at + value.size())) {
      filled.replace(at, word.size(), value);
    }
  }
  return filled;
}

std::string Rules(Account account, bool cluster) {
  std::string rules;
  for (const Right& right : RightsOf(account)) {
    if (right.cluster != cluster) {
      continue;
    }
    std::vector<std::string_view> verbs;
    for (const Verb verb : right.verbs) {
      verbs.push_back(VerbName(verb));
    }
    rules += fmt::format("- {{apiGroups: ['{}'], resources: [{}{}{}], verbs: [{}]}}\n",
                         right.resource.group, right.resource.plural,
                         right.subresource.empty() ? "" : "/", right.subresource,
                         fmt::join(verbs, ", "));
  }
  return rules;
}

constexpr std::string_view kAccount = R"yaml(---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: ACCOUNT
  namespace: NAMESPACE
)yaml";

// KIND is ClusterRole, of objects without a namespace and of those that everybody may list, or
// Role; then WHERE is a line with its namespace.
constexpr std::string_view kRole = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: KIND
metadata:
  name: ROLE
WHERErules:
RULES)yaml";
constexpr std::string_view kBinding = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: KINDBinding
metadata:
  name: ROLE
WHEREroleRef: {apiGroup: rbac.authorization.k8s.io, kind: KIND, name: ROLE}
subjects:
- SUBJECT
)yaml";
constexpr char kNamespaceLine[] = "  namespace: NAMESPACE\n";

std::string AccountYaml(Account account) {
  return Filled(kAccount, {{"ACCOUNT", AccountName(account)}});
}

std::string RoleYaml(const std::string& name, bool cluster, const std::string& rules) {
  return Filled(kRole, {{"KIND", cluster ? "ClusterRole" : "Role"},
                        {"ROLE", name},
                        {"WHERE", cluster ? "" : kNamespaceLine},
                        {"RULES", rules}});
}

std::string RoleYaml(Account account, bool cluster) {
  return RoleYaml(AccountName(account), cluster, Rules(account, cluster));
}

std::string BindingYaml(const std::string& role, bool cluster, const std::string& subject) {
  return Filled(kBinding, {{"KIND", cluster ? "ClusterRole" : "Role"},
                           {"ROLE", role},
                           {"WHERE", cluster ? "" : kNamespaceLine},
                           {"SUBJECT", subject}});
}

std::string BindingYaml(Account account, bool cluster) {
  const std::string name = AccountName(account);
  return BindingYaml(name, cluster,
                     fmt::format("{{kind: ServiceAccount, name: {}, namespace: NAMESPACE}}", name));
}

// A gateway resumes what a controller has suspended that was removed since.
std::string LeaseIsSeenYaml() {
  constexpr char kName[] = "sluice-controller-lease";
  return RoleYaml(kName, false,
                  fmt::format("- {{apiGroups: [coordination.k8s.io], resources: [leases], "
                              "resourceNames: [{}], verbs: [get]}}\n",
                              kControllerLease)) +
         BindingYaml(kName, false,
                     "{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "
                     "'system:serviceaccounts'}");
}

std::string WithoutFirstLine(const std::string& yaml) {
  return yaml.substr(yaml.find('\n') + 1);
}

std::string ControllerAccountYaml() {
  constexpr Account kOne = Account::kController;
  return WithoutFirstLine(AccountYaml(kOne) + RoleYaml(kOne, false) + BindingYaml(kOne, false) +
                          RoleYaml(kOne, true) + BindingYaml(kOne, true) + LeaseIsSeenYaml() +
                          RoleYaml(Account::kGateway, true));
}

std::string AccountsYaml() {
  std::string yaml;
  for (const Account account : {Account::kGateway, Account::kMaster}) {
    yaml += AccountYaml(account) + RoleYaml(account, false) + BindingYaml(account, false);
  }
  return WithoutFirstLine(yaml);
}

std::string DeploymentYaml(const char* component, const char* grace, std::string_view rest) {
  return Filled(kDeployment, {{"COMPONENT", component}, {"GRACE", grace}}) + std::string(rest);
}

std::string InQuotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    quoted += c == '\'' ? "''" : std::string(1, c);
  }
  return quoted + "'";
}

// A line of the gateway's arguments.
std::string AllowArgument(const std::string& allowed) {
  return fmt::format("        - {}\n", InQuotes("--pods-allow=" + allowed));
}

// The same line, in a chart.
constexpr std::string_view kAllowTemplate =
    R"({{ if .Values.podsAllow }}        - {{ printf "--pods-allow=%s" .Values.podsAllow | printf "%q" }}
{{ end }})";

bool IsDnsLabel(std::string_view name) {
  const auto lower_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  return !name.empty() && name.size() <= 63 && lower_or_digit(name.front()) &&
         lower_or_digit(name.back()) && std::all_of(name.begin(), name.end(), [&](char c) {
           return lower_or_digit(c) || c == '-';
         });
}

bool IsImageName(std::string_view name) {
  constexpr std::string_view kOther = "-._/:@";
  return !name.empty() && name.front() != '-' && std::all_of(name.begin(), name.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kOther.find(c) != std::string_view::npos;
  });
}

Status Check(const ManifestOptions& options) {
  Status errors;
  if (!IsDnsLabel(options.namespace_name)) {
    errors.Add(InvalidArgument(fmt::format("'{}' is not a valid namespace", options.namespace_name))
                   .Hint("lower-case letters, digits and '-' in between, at most 63"));
  }
  if (!IsImageName(options.image)) {
    errors.Add(InvalidArgument(fmt::format("'{}' is not a valid image name", options.image))
                   .Hint("registry.example/sluice:1 or registry.example/sluice@sha256:..."));
  }
  return errors;
}

// Of names as they are, or as templates. `options.pods_allow`: a whole line of the gateway's
// arguments.
std::vector<Manifest> Fill(const ManifestOptions& options) {
  std::vector<std::pair<std::string_view, std::string>> words = {
      {"NAMESPACE", std::string(kControllerNamespace)},
      {"IMAGE", options.image},
      {"HIGH", std::string(kHighPriorityClass)},
      {"LOW", std::string(kLowPriorityClass)},
      {"CONTROL", std::string(kControlPriorityClass)},
      {"POLICY", options.rules ? "v1" : "v1beta1"},
      {"MORE", options.pods_allow}};
  std::vector<Manifest> manifests;
  const auto add = [&](const char* folder, const char* file, std::string_view text) {
    manifests.push_back({folder, file, Filled(text, words)});
  };
  manifests.push_back({kClusterBase, "training_job.yaml", TrainingJobDefinition(options.rules)});
  add(kClusterBase, "classes.yaml", kClasses);
  add(kClusterBase, "namespace.yaml", kNamespace);
  add(kClusterBase, "accounts.yaml", ControllerAccountYaml());
  add(kClusterBase, "network.yaml", kControllerNetwork);
  add(kClusterBase, "controller.yaml", DeploymentYaml("controller", "5", kController));
  words.front().second = options.namespace_name;
  if (options.namespace_name != "default") {
    add(kGatewayBase, "namespace.yaml", kNamespace);
  }
  add(kGatewayBase, "accounts.yaml", AccountsYaml());
  add(kGatewayBase, "network.yaml", kNetwork);
  add(kGatewayBase, "gateway.yaml", DeploymentYaml("gateway", "10", kGateway));
  return manifests;
}

}  // namespace

Result<std::vector<Manifest>> BuildManifests(const ManifestOptions& options) {
  RETURN_IF_ERROR(Check(options));
  ManifestOptions filled = options;
  filled.pods_allow = options.pods_allow.empty() ? "" : AllowArgument(options.pods_allow);
  return Fill(filled);
}

Result<std::vector<Manifest>> BuildCharts(const ManifestOptions& options,
                                          const std::string& version) {
  RETURN_IF_ERROR(Check(options));
  std::vector<Manifest> charts;
  for (const char* const chart : {kClusterBase, kGatewayBase}) {
    charts.push_back(
        {chart, "Chart.yaml",
         fmt::format("apiVersion: v2\nname: sluice-{}\nversion: {}\n", chart, version)});
    charts.push_back({chart, "values.yaml",
                      fmt::format("image: {}\npodsAllow: {}\n", InQuotes(options.image),
                                  InQuotes(options.pods_allow))});
  }
  for (Manifest& each : Fill({"{{ .Release.Namespace }}", "{{ .Values.image }}",
                              std::string(kAllowTemplate), options.rules})) {
    // A resource that is no template stays when the release is deleted, and so do the TrainingJobs.
    const bool definition = each.file == "training_job.yaml";
    if (each.file != "namespace.yaml") {
      each.folder += definition ? "/crds" : "/templates";
      charts.push_back(std::move(each));
    }
  }
  return charts;
}

std::string Kustomization(const std::vector<Manifest>& manifests, const std::string& folder) {
  std::string yaml =
      "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n";
  for (const Manifest& manifest : manifests) {
    yaml += manifest.folder == folder ? fmt::format("- {}\n", manifest.file) : "";
  }
  return yaml;
}

}  // namespace sluice::k8s
