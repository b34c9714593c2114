#include <string>

#include "k8s/manifests.h"

namespace sluice::k8s {
namespace {

// Validates what ParseTrainingJobSpec validates, as far as a schema can express it. A status keeps
// fields that this version does not know.
constexpr char kBegin[] = R"yaml(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: trainingjobs.training.sluice
spec:
  group: training.sluice
  scope: Namespaced
  names:
    kind: TrainingJob
    listKind: TrainingJobList
    plural: trainingjobs
    singular: trainingjob
    shortNames: [tj]
    categories: [all]
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources:
      status: {}
      scale:
        specReplicasPath: .spec.workers.max
        statusReplicasPath: .status.workers.running
        labelSelectorPath: .status.selector
    additionalPrinterColumns:
    - {name: State, type: string, jsonPath: '.status.conditions[?(@.status=="True")].type'}
    - {name: Workers, type: integer, jsonPath: .status.workers.running}
    - {name: Granted, type: integer, jsonPath: .status.workers.granted}
    - {name: Most, type: integer, jsonPath: .status.workers.most}
    - {name: Done, type: integer, description: percent, jsonPath: .status.progress}
    - {name: Loss, type: number, jsonPath: .status.loss}
    - {name: Rows/s, type: number, jsonPath: .status.rowsPerSecond}
    - {name: Left, type: integer, description: seconds, jsonPath: .status.secondsLeft}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: Job, type: integer, priority: 1, jsonPath: .status.job}
    - {name: Model, type: string, priority: 1, jsonPath: .status.model}
    - {name: Master, type: string, priority: 1, jsonPath: .status.master.pod}
    - {name: Waiting for, type: string, priority: 1, jsonPath: .status.workers.waitingFor}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [statement, source]
            properties:
              statement:
                type: string
                minLength: 1
                maxLength: 262144
                description: One statement that trains, as a gateway would take it.
              source:
                type: object
                required: [secretName]
                description: The Secret with the URL of the data source, postgresql://...
                properties:
                  secretName: {type: string, minLength: 1, maxLength: 253}
                  key: {type: string, default: source, minLength: 1, maxLength: 253}
)yaml";

// For each role; the parts for workers and servers only precede it.
constexpr char kResources[] = R"yaml(                  resources:
                    type: object
                    properties:
                      requests: &quantities
                        type: object
                        additionalProperties:
                          anyOf: [{type: integer}, {type: string}]
                          x-kubernetes-int-or-string: true
                          pattern: '^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'
                      limits: *quantities
                  priority:
                    type: string
                    pattern: '^(high|low|0(\.[0-9]+)?|1(\.0+)?)$'
                    description: high, low, or the share of the pods that is high.
                  template:
                    type: string
                    maxLength: 253
                    description: A PodTemplate of the namespace, for this role alone.
)yaml";

// What a schema cannot express: of the statement, and of workers and servers.
constexpr char kStatementRules[] = R"yaml(                x-kubernetes-validations:
                - {rule: self == oldSelf, message: 'it cannot be changed: create another TrainingJob'}
)yaml";
constexpr char kProcessesRules[] = R"yaml(                x-kubernetes-validations:
                - {rule: '!has(self.min) || !has(self.max) || self.min <= self.max', message: min is more than max}
)yaml";

constexpr char kEnd[] = R"yaml(              priority:
                type: integer
                minimum: -1000
                maximum: 1000
                description: Jobs of a higher priority get their processes first.
              template:
                type: string
                maxLength: 253
                description: A PodTemplate of the namespace that all pods are made of.
              image:
                type: string
                description: By digest; that of the gateway where it is not given.
              imagePullPolicy: {type: string, enum: [Always, IfNotPresent, Never]}
              volumes:
                type: array
                maxItems: 32
                items:
                  type: object
                  required: [claimName, mountPath]
                  properties:
                    claimName: {type: string, minLength: 1, maxLength: 253}
                    mountPath: {type: string, pattern: '^/'}
                    subPath: {type: string}
                    readOnly: {type: boolean}
              suspend:
                type: boolean
                description: A checkpoint is written and every pod ends, until it is false again.
              activeDeadlineSeconds: {type: integer, format: int64, minimum: 1}
              ttlSecondsAfterFinished: {type: integer, format: int64, minimum: 0}
          status:
            type: object
            x-kubernetes-preserve-unknown-fields: true
            properties:
              observedGeneration: {type: integer, format: int64}
              conditions:
                type: array
                description: Queued, Suspended, Running, Degraded, Complete, Failed, SpecInvalid.
                items:
                  type: object
                  required: [type, status]
                  properties:
                    type: {type: string}
                    status: {type: string, enum: ['True', 'False', Unknown]}
                    reason: {type: string}
                    message: {type: string}
                    lastTransitionTime: {type: string, format: date-time}
                    observedGeneration: {type: integer, format: int64}
              job: {type: integer, format: int64, description: Its number in SHOW JOBS.}
              begun:
                type: object
                description: The statement and the source that hold since it was begun or refused.
                properties:
                  statementSha256: {type: string}
                  secretName: {type: string}
                  key: {type: string}
              model: {type: string}
              version: {type: integer, format: int64}
              rows: {type: integer, format: int64, description: "Trained, over all epochs."}
              sha256: {type: string, description: Of the stored weights.}
              seconds: {type: integer, format: int64, description: From the job's start to its end.}
              master:
                type: object
                properties:
                  number: {type: integer, format: int64}
                  pod: {type: string}
              grant:
                type: object
                description: What the controller gives; nobody else writes it.
                required: [workers]
                properties:
                  workers: {type: integer, minimum: 0}
                  giveUp: {type: array, items: {type: string}}
                  nodes: {type: array, items: {type: string}}
                  reason: {type: string}
                  suspend: {type: boolean}
              canSuspend: {type: boolean}
              workers:
                type: object
                properties:
                  running: {type: integer}
                  granted: {type: integer}
                  most: {type: integer}
                  waiting: {type: integer}
                  waitingFor: {type: string}
              servers:
                type: object
                properties:
                  running: {type: integer}
              progress: {type: integer, description: Percent.}
              loss: {type: number}
              rowsPerSecond: {type: number}
              secondsLeft: {type: integer, format: int64}
              scalings:
                type: array
                description: The last twenty.
                items:
                  type: object
                  properties:
                    time: {type: string, format: date-time}
                    from: {type: integer}
                    to: {type: integer}
                    reason: {type: string}
              selector: {type: string}
              startTime: {type: string, format: date-time}
              completionTime: {type: string, format: date-time}
)yaml";

// YAML has anchors, but not every program that reads a manifest supports them: each role's schema
// is written out.
std::string Resources() {
  std::string text = kResources;
  const std::string anchor = " &quantities\n", use = "limits: *quantities\n";
  const size_t begin = text.find(anchor) + anchor.size();
  const std::string quantities =
      text.substr(begin, text.find("                      limits:") - begin);
  text.replace(text.find(use), use.size(), "limits:\n" + quantities);
  text.replace(text.find(anchor), anchor.size(), "\n");
  return text;
}

std::string Processes(const std::string& role, int least, bool rules) {
  const std::string limits =
      "{type: integer, minimum: " + std::to_string(least) + ", maximum: 1024}";
  std::string text =
      "              " + role + ":\n                type: object\n                properties:\n";
  if (role != "master") {
    text += "                  min: " + limits + "\n                  max: " + limits + "\n";
    text.insert(text.find("                properties:"), rules ? kProcessesRules : "");
  }
  return text + Resources();
}

}  // namespace

std::string TrainingJobDefinition(bool rules) {
  std::string begin = kBegin;
  begin.insert(begin.find("              source:\n"), rules ? kStatementRules : "");
  return begin + Processes("master", 1, rules) + Processes("workers", 1, rules) +
         Processes("servers", 0, rules) + kEnd;
}

}  // namespace sluice::k8s
