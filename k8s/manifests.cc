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

// Of objects without a namespace, and of those that everybody may list.
constexpr std::string_view kClusterRole = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: ACCOUNT
rules:
RULES)yaml";
constexpr std::string_view kClusterRoleBinding = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: ACCOUNT
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ACCOUNT}
subjects:
- {kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}
)yaml";
constexpr std::string_view kRole = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: ACCOUNT
  namespace: NAMESPACE
rules:
RULES---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: ACCOUNT
  namespace: NAMESPACE
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ACCOUNT}
subjects:
- {kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}
)yaml";

// A gateway resumes what a controller has suspended that was removed since.
constexpr std::string_view kLeaseIsSeen = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: sluice-controller-lease
  namespace: NAMESPACE
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [LEASE], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: sluice-controller-lease
  namespace: NAMESPACE
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sluice-controller-lease}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: 'system:serviceaccounts'}
)yaml";

std::string For(Account account, std::string_view text, bool cluster) {
  return Filled(text, {{"ACCOUNT", AccountName(account)}, {"RULES", Rules(account, cluster)}});
}

std::string WithoutFirstLine(const std::string& yaml) {
  return yaml.substr(yaml.find('\n') + 1);
}

std::string ControllerAccountYaml() {
  constexpr Account kOne = Account::kController;
  return WithoutFirstLine(For(kOne, kAccount, false) + For(kOne, kRole, false) +
                          For(kOne, kClusterRole, true) + For(kOne, kClusterRoleBinding, true) +
                          Filled(kLeaseIsSeen, {{"LEASE", std::string(kControllerLease)}}) +
                          For(Account::kGateway, kClusterRole, true));
}

std::string AccountsYaml() {
  std::string yaml;
  for (const Account account : {Account::kGateway, Account::kMaster}) {
    yaml += For(account, kAccount, false) + For(account, kRole, false);
  }
  return WithoutFirstLine(yaml);
}

// A line of the gateway's arguments.
std::string AllowArgument(std::string_view allowed) {
  std::string line = "        - '--pods-allow=";
  for (const char c : allowed) {
    line += c == '\'' ? "''" : std::string(1, c);
  }
  return line + "'\n";
}

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

}  // namespace

Result<std::vector<Manifest>> BuildManifests(const ManifestOptions& options) {
  Status errors;
  if (!IsDnsLabel(options.namespace_name)) {
    errors.Add(InvalidArgument(fmt::format("'{}' is not a valid namespace", options.namespace_name))
                   .Hint("lower-case letters, digits and '-' in between, at most 63"));
  }
  if (!IsImageName(options.image)) {
    errors.Add(InvalidArgument(fmt::format("'{}' is not a valid image name", options.image))
                   .Hint("registry.example/sluice:1 or registry.example/sluice@sha256:..."));
  }
  RETURN_IF_ERROR(errors);
  std::vector<std::pair<std::string_view, std::string>> words = {
      {"NAMESPACE", std::string(kControllerNamespace)},
      {"IMAGE", options.image},
      {"HIGH", std::string(kHighPriorityClass)},
      {"LOW", std::string(kLowPriorityClass)},
      {"CONTROL", std::string(kControlPriorityClass)},
      {"POLICY", options.rules ? "v1" : "v1beta1"},
      {"MORE", options.pods_allow.empty() ? "" : AllowArgument(options.pods_allow)}};
  std::vector<Manifest> manifests;
  const auto add = [&](const char* folder, const char* file, std::string_view text) {
    manifests.push_back({folder, file, Filled(text, words)});
  };
  manifests.push_back({kClusterBase, "training_job.yaml", TrainingJobDefinition(options.rules)});
  add(kClusterBase, "classes.yaml", kClasses);
  add(kClusterBase, "namespace.yaml", kNamespace);
  add(kClusterBase, "accounts.yaml", ControllerAccountYaml());
  add(kClusterBase, "network.yaml", kControllerNetwork);
  add(kClusterBase, "controller.yaml", kController);
  words.front().second = options.namespace_name;
  if (options.namespace_name != "default") {
    add(kGatewayBase, "namespace.yaml", kNamespace);
  }
  add(kGatewayBase, "accounts.yaml", AccountsYaml());
  add(kGatewayBase, "network.yaml", kNetwork);
  add(kGatewayBase, "gateway.yaml", kGateway);
  return manifests;
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
