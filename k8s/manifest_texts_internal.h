#pragma once

#include <string_view>

// The texts of manifests. Words in capitals are replaced: NAMESPACE, IMAGE, HIGH, LOW and CONTROL
// (the priority classes), POLICY (v1), MORE (arguments of the gateway), COMPONENT, GRACE.
namespace sluice::k8s {

inline constexpr std::string_view kNamespace = R"yaml(apiVersion: v1
kind: Namespace
metadata:
  name: NAMESPACE
  labels:
    app.kubernetes.io/name: sluice
    pod-security.kubernetes.io/enforce: restricted
    pod-security.kubernetes.io/warn: restricted
)yaml";

// Who may reach whom, where the cluster's network obeys such policies: clients the gateway's doors;
// the processes of jobs only each other, and the gateway; Prometheus the pages of metrics.
inline constexpr std::string_view kNetwork = R"yaml(apiVersion: networking.k8s.io/v1
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

inline constexpr std::string_view kControllerNetwork = R"yaml(apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: sluice-controller
  namespace: NAMESPACE
spec:
  podSelector:
    matchLabels: {app.kubernetes.io/name: sluice}
  policyTypes: [Ingress]
  ingress:
  - ports:
    - {port: metrics}
)yaml";

// Below -10 a node autoscaler neither adds a node for a pod nor keeps one that is otherwise empty;
// pods of jobs preempt no others. Gateways and the controller have the priority of a cluster's
// other pods, which preempt what is below 0: Sluice's own workers first.
inline constexpr std::string_view kClasses = R"yaml(apiVersion: scheduling.k8s.io/v1
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
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata:
  name: CONTROL
value: 0
description: Gateways and the controller of Sluice. They take the place of its workers, and nobody else's of 0 or more.
)yaml";

// What the two Deployments begin with: a COMPONENT, which has GRACE seconds to end.
inline constexpr std::string_view kDeployment = R"yaml(apiVersion: apps/v1
kind: Deployment
metadata:
  name: sluice-COMPONENT
  namespace: NAMESPACE
  labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: COMPONENT}
spec:
  replicas: 1
  selector:
    matchLabels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: COMPONENT}
  template:
    metadata:
      labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: COMPONENT}
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}
    spec:
      serviceAccountName: sluice-COMPONENT
      priorityClassName: CONTROL
      enableServiceLinks: false
      terminationGracePeriodSeconds: GRACE
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        seccompProfile: {type: RuntimeDefault}
      containers:
      - name: COMPONENT
        image: IMAGE
        imagePullPolicy: IfNotPresent
        livenessProbe:
          httpGet: {path: /healthz, port: metrics}
          initialDelaySeconds: 20
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
)yaml";

// The rest of the gateway's. The Secrets are created by the installation: the source's URL gives
// access to the database.
inline constexpr std::string_view kGateway = R"yaml(        args:
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
          httpGet: {path: /readyz, port: metrics}
          periodSeconds: 2
          timeoutSeconds: 2
        resources:
          requests: {cpu: 500m, memory: 512Mi}
          limits: {cpu: "4", memory: 2Gi}
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
  labels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
spec:
  selector: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
  # A statement is cancelled by a second connection, which has to reach the same gateway.
  sessionAffinity: ClientIP
  ports:
  - {name: grpc, port: 50051, targetPort: grpc}
  - {name: postgresql, port: 5432, targetPort: postgresql}
  - {name: metrics, port: 9090, targetPort: metrics}
---
apiVersion: policy/POLICY
kind: PodDisruptionBudget
metadata:
  name: sluice-gateway
  namespace: NAMESPACE
spec:
  maxUnavailable: 1
  selector:
    matchLabels: {app.kubernetes.io/name: sluice, app.kubernetes.io/component: gateway}
)yaml";

// The rest of the controller's.
inline constexpr std::string_view kController =
    R"yaml(        args: [controller, --metrics=0.0.0.0:9090, --log-level=info]
        ports:
        - {name: metrics, containerPort: 9090}
        resources:
          requests: {cpu: 50m, memory: 100Mi}
          limits: {cpu: 500m, memory: 512Mi}
)yaml";

}  // namespace sluice::k8s
