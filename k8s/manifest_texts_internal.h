#pragma once

#include <string_view>

// The texts of manifests. Words in capitals are replaced: NAMESPACE, IMAGE, HIGH, LOW and CONTROL
// (the priority classes), POLICY (v1), MORE (arguments of the gateway).
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
// pods of these classes preempt no others.
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
value: 100000
description: Gateways and the controller of Sluice, which all trainings of a namespace or a cluster need.
)yaml";

// The Secrets are created by the installation: the source's URL gives access to the database.
inline constexpr std::string_view kGateway = R"yaml(apiVersion: apps/v1
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
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}
    spec:
      serviceAccountName: sluice-gateway
      priorityClassName: CONTROL
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
          httpGet: {path: /readyz, port: metrics}
          periodSeconds: 2
          timeoutSeconds: 2
        livenessProbe:
          httpGet: {path: /healthz, port: metrics}
          initialDelaySeconds: 20
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
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

inline constexpr std::string_view kController = R"yaml(apiVersion: apps/v1
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
      annotations: {prometheus.io/scrape: "true", prometheus.io/port: "9090"}
    spec:
      serviceAccountName: sluice-controller
      priorityClassName: CONTROL
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
        livenessProbe:
          httpGet: {path: /healthz, port: metrics}
          initialDelaySeconds: 20
          periodSeconds: 10
          timeoutSeconds: 5
          failureThreshold: 6
        resources:
          requests: {cpu: 50m, memory: 100Mi}
          limits: {cpu: 500m, memory: 512Mi}
        securityContext:
          allowPrivilegeEscalation: false
          readOnlyRootFilesystem: true
          capabilities: {drop: [ALL]}
)yaml";

}  // namespace sluice::k8s
