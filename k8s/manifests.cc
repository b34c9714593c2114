#include "k8s/manifests.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "k8s/pod_request.h"
#include "k8s/rights.h"

namespace sluice::k8s {
namespace {

constexpr std::string_view kNamespace = R"yaml(apiVersion: v1
kind: Namespace
metadata:
  name: NAMESPACE
  labels:
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
)yaml";

// Who may reach whom, where the cluster's network obeys such policies: clients the gateway's doors;
// the processes of jobs only each other, and the gateway; Prometheus the pages of metrics.
constexpr std::string_view kNetwork = R"yaml(apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: sluice-gateway
  namespace: NAMESPACE
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/name: sluice}
  policyTypes: [Ingress]
  ingress:
  - ports:
    - {port: grpc}
    - {port: postgresql}
    - {port: metrics}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: sluice-jobs
  namespace: NAMESPACE
spec:
  podSelector:
    matchExpressions:
    - {key: training.sluice/role, operator: Exists}
  policyTypes: [Ingress]
  ingress:
  - from:
    - podSelector:
        matchExpressions:
        - {key: training.sluice/role, operator: Exists}
    - podSelector:
        matchLabels: {app.kubernetes.io/name: sluice}
  - ports:
    - {port: 7078}
)yaml";

// Below -10 a node autoscaler neither adds a node for a pod nor keeps one that is otherwise empty;
// pods of these classes preempt no others.
constexpr std::string_view kClasses = R"yaml(apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: HIGH
value: -100
preemptionPolicy: Never
description: Masters and parameter servers of Sluice, and workers that ask for it.
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: LOW
value: -1000
preemptionPolicy: Never
description: Workers of Sluice. They use what is idle; who needs it takes it from them.
)yaml";

// The Secrets are created by the installation: the source's URL gives access to the database.
constexpr std::string_view kGateway = R"yaml(apiVersion: apps/v1
kind: Deployment
metadata:
  name: sluice-gateway
  namespace: NAMESPACE
  labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
spec:
  replicas: 1
  selector:
    matchLabels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
  template:
    metadata:
      labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
    spec:
      serviceAccountName: sluice-gateway
      enableServiceLinks: false
      terminationGracePeriodSeconds: 10
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: gateway
        image: IMAGE
        imagePullPolicy: IfNotPresent
        args:
        - serve
        - --source-file=/var/run/sluice/source/source
        - --grpc=0.0.0.0:50051
        - --pg=0.0.0.0:5432
        - --metrics=0.0.0.0:9090
        - --tls-cert=/var/run/sluice/tls/tls.crt
        - --tls-key=/var/run/sluice/tls/tls.key
        - --cluster=kubernetes
        - --pods-image=IMAGE
        - --pods-priority-class=LOW
MORE        ports:
        - {name: grpc, containerPort: 50051}
        - {name: postgresql, containerPort: 5432}
        - {name: metrics, containerPort: 9090}
        readinessProbe:
          tcpSocket: {port: grpc}
          periodSeconds: 2
        resources:
          requests: {cpu: 500m, memory: 512Mi}
          limits: {cpu: "4", memory: 2Gi}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
        volumeMounts:
        - {name: source, mountPath: /var/run/sluice/source, readOnly: true}
        - {name: tls, mountPath: /var/run/sluice/tls, readOnly: true}
        - {name: tmp, mountPath: /tmp}
      volumes:
      - {name: source, secret: {secretName: sluice-source, defaultMode: 0440}}
      - {name: tls, secret: {secretName: sluice-gateway-tls, defaultMode: 0440}}
      - {name: tmp, emptyDir: {sizeLimit: 10Gi}}
---
apiVersion: v1
kind: Service
metadata:
  name: sluice-gateway
  namespace: NAMESPACE
spec:
  selector: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
  ports:
  - {name: grpc, port: 50051, targetPort: grpc}
  - {name: postgresql, port: 5432, targetPort: postgresql}
)yaml";

constexpr std::string_view kController = R"yaml(apiVersion: apps/v1
kind: Deployment
metadata:
  name: sluice-controller
  namespace: NAMESPACE
  labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: controller}
spec:
  replicas: 1
  selector:
    matchLabels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: controller}
  template:
    metadata:
      labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: controller}
    spec:
      serviceAccountName: sluice-controller
      enableServiceLinks: false
      terminationGracePeriodSeconds: 5
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: controller
        image: IMAGE
        imagePullPolicy: IfNotPresent
        args: [controller, --metrics=0.0.0.0:9090, --log-level=info]
        ports:
        - {name: metrics, containerPort: 9090}
        resources:
          requests: {cpu: 50m, memory: 100Mi}
          limits: {cpu: 500m, memory: 512Mi}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
)yaml";

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

// An account, its role in its namespace or (`cluster`) everywhere, and the binding.
std::string RoleYaml(Account account, bool cluster) {
  constexpr std::string_view kText = R"yaml(---
apiVersion: rbac.authorization.k8s.io/v1
kind: ROLE
metadata:
  name: NAME
WHERErules:
RULES---
apiVersion: rbac.authorization.k8s.io/v1
kind: ROLEBinding
metadata:
  name: NAME
WHEREroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ROLE, name: NAME}
subjects:
- {kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}
)yaml";
  // Objects without a namespace have it in their name, because two installations may share a
  // cluster.
  return Filled(kText, {{"ROLE", cluster ? "ClusterRole" : "Role"},
                        {"NAMESPACE", "\1"},
                        {"NAME", AccountName(account) + (cluster ? "-\1" : "")},
                        {"ACCOUNT", AccountName(account)},
                        {"WHERE", cluster ? "" : "  namespace: \1\n"},
                        {"RULES", Rules(account, cluster)},
                        {"\1", "NAMESPACE"}});
}

std::string AccountsYaml() {
  std::string yaml;
  for (const Account account : {Account::kGateway, Account::kMaster, Account::kController}) {
    yaml += fmt::format(
        "{}apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {}\n  namespace: NAMESPACE\n",
        yaml.empty() ? "" : "---\n", AccountName(account));
    yaml += RoleYaml(account, false);
    if (account != Account::kMaster) {
      yaml += RoleYaml(account, true);
    }
  }
  return yaml;
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
  const std::vector<std::pair<std::string_view, std::string>> words = {
      {"NAMESPACE", options.namespace_name},
      {"IMAGE", options.image},
      {"HIGH", std::string(kHighPriorityClass)},
      {"LOW", std::string(kLowPriorityClass)},
      {"MORE", options.pods_allow.empty() ? "" : AllowArgument(options.pods_allow)}};
  std::vector<Manifest> manifests;
  if (options.namespace_name != "default") {
    manifests.push_back({"namespace.yaml", Filled(kNamespace, words)});
  }
  manifests.push_back({"training_job.yaml", TrainingJobDefinition(options.rules)});
  manifests.push_back({"classes.yaml", Filled(kClasses, words)});
  manifests.push_back({"accounts.yaml", Filled(AccountsYaml(), words)});
  manifests.push_back({"network.yaml", Filled(kNetwork, words)});
  manifests.push_back({"gateway.yaml", Filled(kGateway, words)});
  manifests.push_back({"controller.yaml", Filled(kController, words)});
  return manifests;
}

std::string Kustomization(const std::vector<Manifest>& manifests,
                          const std::string& namespace_name) {
  std::string yaml = fmt::format(
      "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: {}\n"
      "resources:\n",
      namespace_name);
  for (const Manifest& manifest : manifests) {
    yaml += fmt::format("- {}\n", manifest.file);
  }
  return yaml;
}

}  // namespace sluice::k8s
