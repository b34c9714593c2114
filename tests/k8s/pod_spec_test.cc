#include "k8s/pod_spec.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "k8s/json_internal.h"

namespace sluice::k8s {
namespace {

using testing::HasSubstr;
using testing::Not;

elastic::ProcessSpec Process(elastic::Role role = elastic::Role::kWorker) {
  elastic::ProcessSpec spec;
  spec.role = role;
  spec.name = role == elastic::Role::kWorker ? "job7-worker-3" : "job7-ps-1";
  spec.config = "plan";
  spec.secret = "word";
  spec.resources = {1.5, int64_t{2} << 30};
  spec.incarnation = elastic::Incarnation(9);
  spec.server_index = elastic::ServerId(1);
  return spec;
}

PodShape Shape(const std::string& template_json = "") {
  PodShape shape;
  shape.namespace_name = "team";
  shape.owner = {"training.sluice/v1alpha1", "TrainingJob", "census", "uid-7"};
  shape.image = "sluice@sha256:0123";
  shape.template_json = template_json;
  return shape;
}

PodIdentity Identity(elastic::Role role = elastic::Role::kWorker) {
  return {"uid-7", role, elastic::Incarnation(9), elastic::ServerId(1)};
}

std::string Build(const PodShape& shape, elastic::Role role = elastic::Role::kWorker) {
  const Result<std::string> pod = BuildPod(shape, Identity(role), Process(role), "the-secret");
  return pod.ok() ? *pod : pod.status().message();
}

TEST(PodSpec, HasTheNameOfItsTrainingJobWhereALabelCanHoldIt) {
  PodShape shape = Shape();
  shape.training_job = "census";
  EXPECT_THAT(Build(shape), testing::HasSubstr(R"("training.sluice/name":"census")"));
  shape.training_job = std::string(64, 'a');
  EXPECT_THAT(Build(shape), testing::Not(testing::HasSubstr("training.sluice/name")));
}

TEST(PodSpec, HasWhatTheProtocolNeedsAndSafeDefaults) {
  EXPECT_EQ(
      Build(Shape()),
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job7-worker-3","namespace":"team",)"
      R"("labels":{"training.sluice/incarnation":"9","training.sluice/job":"uid-7",)"
      R"("training.sluice/role":"worker"},"ownerReferences":[{"apiVersion":)"
      R"("training.sluice/v1alpha1","kind":"TrainingJob","name":"census","uid":"uid-7"}]},)"
      R"("spec":{"restartPolicy":"Never","automountServiceAccountToken":false,)"
      R"("enableServiceLinks":false,"terminationGracePeriodSeconds":2,)"
      R"("containers":[{"name":"sluice","image":"sluice@sha256:0123","args":["worker",)"
      R"x("/var/run/sluice/process","$(SLUICE_POD_IP)","$(SLUICE_NODE)","job7-worker-3","9"],)x"
      R"("terminationMessagePolicy":"FallbackToLogsOnError",)"
      R"("resources":{"requests":{"cpu":"1500m","memory":"2Gi"},"limits":{"memory":"2Gi"}},)"
      R"("env":[{"name":"SLUICE_POD_IP","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}},)"
      R"({"name":"SLUICE_NODE","valueFrom":{"fieldRef":{"fieldPath":"spec.nodeName"}}}],)"
      R"("securityContext":{"allowPrivilegeEscalation":false,"readOnlyRootFilesystem":true,)"
      R"("capabilities":{"drop":["ALL"]}},"volumeMounts":[{"name":"sluice-process",)"
      R"("mountPath":"/var/run/sluice/process","readOnly":true},{"name":"sluice-tmp",)"
      R"("mountPath":"/tmp","readOnly":false}]}],"securityContext":{"runAsNonRoot":true,)"
      R"("runAsUser":65532,"fsGroup":65532,"seccompProfile":{"type":"RuntimeDefault"}},)"
      R"("volumes":[{"name":"sluice-process","secret":{"secretName":"the-secret",)"
      R"("defaultMode":288}},{"name":"sluice-tmp","emptyDir":{}}]}})");
}

// The API server has added it: the image of the template has no tag.
TEST(PodSpec, ThePullPolicyOfTheTemplatesImageIsNotThatOfOurs) {
  const auto built = [](const std::string& image, const std::string& policy) {
    return Build(Shape(fmt::format(
        R"({{"spec":{{"containers":[{{"name":"sluice","image":"{}","imagePullPolicy":"{}"}}]}}}})",
        image, policy)));
  };
  for (const char* image : {"any", "registry:5000/any", "any:latest"}) {
    EXPECT_THAT(built(image, "Always"), Not(HasSubstr("imagePullPolicy"))) << image;
  }
  EXPECT_THAT(built("any", "Never"), HasSubstr(R"("imagePullPolicy":"Never")"));
  for (const char* image : {"any:1", "registry:5000/any:1", "any@sha256:01"}) {
    EXPECT_THAT(built(image, "Always"), HasSubstr(R"("imagePullPolicy":"Always")")) << image;
  }
}

TEST(PodSpec, WhatTheAdministratorsTemplateSaysStays) {
  const std::string pod = Build(Shape(R"({"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"q"},
    "annotations":{"a":"b"},"name":"theirs"},
    "spec":{"tolerations":[{"key":"spot"}],"nodeSelector":{"disk":"ssd"},"schedulerName":"theirs",
    "serviceAccountName":"reader","imagePullSecrets":[{"name":"registry"}],
    "securityContext":{"runAsUser":1000},"enableServiceLinks":true,
    "terminationGracePeriodSeconds":120,
    "containers":[{"name":"log","image":"fluent"},{"name":"sluice","image":"old","command":["x"],
      "resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"ephemeral-storage":"1Gi"}},
      "env":[{"name":"TZ","value":"UTC"}],
      "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "volumes":[{"name":"data","persistentVolumeClaim":{"claimName":"c"}}]},"status":{"phase":"x"}})"));
  for (const std::string kept :
       {R"("kueue.x-k8s.io/queue-name":"q")", R"("annotations":{"a":"b"})", R"([{"key":"spot"}])",
        R"({"disk":"ssd"})", R"("schedulerName":"theirs")", R"("serviceAccountName":"reader")",
        R"([{"name":"registry"}])", R"("runAsUser":1000)", R"("enableServiceLinks":true)",
        R"("terminationGracePeriodSeconds":120)", R"({"name":"log","image":"fluent"})",
        R"("command":["x"])", R"({"name":"TZ","value":"UTC"})",
        R"({"name":"data","mountPath":"/data"})", R"("claimName":"c")",
        R"("ephemeral-storage":"1Gi")", R"("limits":{"cpu":"2","memory":"2Gi"})"}) {
    EXPECT_THAT(pod, HasSubstr(kept));
  }
  for (const std::string ours : {R"("name":"job7-worker-3")", R"("image":"sluice@sha256:0123")",
                                 R"("training.sluice/job":"uid-7")"}) {
    EXPECT_THAT(pod, HasSubstr(ours));
  }
  EXPECT_THAT(pod, Not(HasSubstr("status\":{")));
}

TEST(PodSpec, WhatTheProtocolCannotBearIsOverruled) {
  const std::string pod = Build(Shape(
      R"({"spec":{"restartPolicy":"Always","terminationGracePeriodSeconds":0,
          "automountServiceAccountToken":true,"containers":"none"}})"));
  EXPECT_THAT(pod, HasSubstr(R"("restartPolicy":"Never")"));
  EXPECT_THAT(pod, HasSubstr(R"("terminationGracePeriodSeconds":1)"))
      << "with 0 the API forgets a pod that may still run";
  EXPECT_THAT(pod, HasSubstr(R"("automountServiceAccountToken":false)"));
  EXPECT_THAT(Build(Shape("[1]")), HasSubstr("the pod template is JSON, but not an object"));
  EXPECT_EQ(Build(Shape(R"({"spec":[]})")), "the pod template's spec is not an object");
}

TEST(PodSpec, ServersKeepApartAndMastersMayTalkToTheApi) {
  const std::string server = Build(Shape(), elastic::Role::kParameterServer);
  EXPECT_THAT(server, HasSubstr(R"("args":["ps","/var/run/sluice/process",)"));
  EXPECT_THAT(server, HasSubstr(R"("job7-ps-1","1"])"));
  EXPECT_THAT(server, HasSubstr(R"("training.sluice/server":"1")"));
  EXPECT_THAT(server, HasSubstr(R"("podAntiAffinity":{"preferredDuringScheduling)"));
  EXPECT_THAT(Build(Shape(R"({"spec":{"affinity":{}}})"), elastic::Role::kParameterServer),
              Not(HasSubstr("podAntiAffinity")));
  EXPECT_THAT(Build(Shape(), elastic::Role::kMaster),
              Not(HasSubstr("automountServiceAccountToken")));
  EXPECT_THAT(Build(Shape(), elastic::Role::kMaster),
              HasSubstr(R"("serviceAccountName":"sluice-master")"));
  EXPECT_THAT(Build(Shape(R"({"spec":{"serviceAccountName":"theirs"}})"), elastic::Role::kMaster),
              HasSubstr(R"("serviceAccountName":"theirs")"));
}

std::string ResourcesOf(const PodResources& asked, double cpu, int64_t memory_bytes) {
  PodShape shape = Shape();
  shape.request.roles[elastic::Role::kWorker].resources = asked;
  elastic::ProcessSpec process = Process();
  process.resources = {cpu, memory_bytes};
  const std::string pod = BuildPod(shape, Identity(), process, "s").value();
  return ToJson(*FindIn(ArrayIn(ParseJsonObject(pod, "the pod").value(), {"spec", "containers"})[0],
                        {"resources"}));
}

TEST(PodSpec, WhatTheStatementAsksForIsGivenAndNeverRefused) {
  const auto gib = [](int64_t count) { return Quantity::OfBytes(count << 30); };
  const Quantity one = Quantity::OfMillis(1000), two = Quantity::OfMillis(2000);
  EXPECT_EQ(ResourcesOf({{{"cpu", two}, {"memory", gib(4)}}, {{"cpu", two}}}, 1, 1 << 30),
            R"({"requests":{"cpu":"2","memory":"4Gi"},"limits":{"cpu":"2","memory":"4Gi"}})");
  EXPECT_EQ(ResourcesOf({{{"memory", gib(1)}}, {{"memory", gib(2)}}}, 1, int64_t{3} << 30),
            R"({"requests":{"cpu":"1","memory":"3Gi"},"limits":{"memory":"3Gi"}})")
      << "the process was given more after it had run out of memory";
  EXPECT_EQ(ResourcesOf({{}, {{"nvidia.com/gpu", one}, {"cpu", one}}}, 2, 0),
            R"({"requests":{"cpu":"2","nvidia.com/gpu":"1"},)"
            R"("limits":{"cpu":"2","nvidia.com/gpu":"1"}})");
  EXPECT_EQ(ResourcesOf({{{"example.com/tpu", two}}, {}}, 1, 0),
            R"({"requests":{"cpu":"1","example.com/tpu":"2"},"limits":{"example.com/tpu":"2"}})");
}

TEST(PodSpec, AnotherRolesRequestIsNotIts) {
  PodShape shape = Shape();
  shape.request.roles[elastic::Role::kParameterServer].resources.requests["cpu"] =
      Quantity::OfMillis(7000);
  EXPECT_THAT(Build(shape), HasSubstr(R"("cpu":"1500m")"));
  EXPECT_THAT(Build(shape, elastic::Role::kParameterServer), HasSubstr(R"("cpu":"7")"));
}

TEST(PodSpec, APriorityIsTheShapesOrAShareOfTheRole) {
  PodShape shape = Shape(R"({"spec":{"priorityClassName":"theirs","priority":7}})");
  EXPECT_THAT(Build(shape), HasSubstr(R"("priorityClassName":"theirs","priority":7)"));
  shape.priority_class = "sluice-low";
  EXPECT_THAT(Build(shape), HasSubstr(R"("priorityClassName":"sluice-low")"));
  EXPECT_THAT(Build(shape), Not(HasSubstr(R"("priority":7)")));
  for (const elastic::Role role : {elastic::Role::kMaster, elastic::Role::kParameterServer}) {
    EXPECT_THAT(Build(shape, role), HasSubstr(R"("priorityClassName":"sluice-high")"))
        << "a service that needs room takes workers first";
  }
  shape.request.roles[elastic::Role::kWorker].priority = {true, 0.5};
  shape.request.roles[elastic::Role::kWorker].pods = 4;
  std::string classes;
  for (const char* name : {"j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4", "j-worker-5"}) {
    elastic::ProcessSpec process = Process();
    process.name = name;
    const std::string pod = BuildPod(shape, Identity(), process, "s").value();
    classes += pod.find("sluice-high") != std::string::npos ? 'h' : 'l';
  }
  EXPECT_EQ(classes, "hllhh");
}

TEST(PodSpec, NodesAreAvoidedWhereThereIsRoomElsewhere) {
  PodShape shape = Shape();
  EXPECT_THAT(Build(shape), Not(HasSubstr("nodeAffinity")));
  shape.avoided_nodes = {"node-1", "node-2"};
  EXPECT_THAT(
      Build(shape),
      HasSubstr(R"("nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":)"
                R"(100,"preference":{"matchExpressions":[{"key":"kubernetes.io/hostname",)"
                R"("operator":"NotIn","values":["node-1","node-2"]}]}}]})"));
}

TEST(PodSpec, WorkersPreferTheNodesOfTheirGrant) {
  PodShape shape = Shape();
  shape.worker_nodes = {"node-1", "node-2"};
  EXPECT_THAT(
      Build(shape),
      HasSubstr(R"("nodeAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":)"
                R"(50,"preference":{"matchExpressions":[{"key":"kubernetes.io/hostname",)"
                R"("operator":"In","values":["node-1","node-2"]}]}}]})"));
  EXPECT_THAT(Build(shape, elastic::Role::kParameterServer), Not(HasSubstr("nodeAffinity")));
}

TEST(PodSpec, AMasterHasTimeToWaitForTheNextOne) {
  EXPECT_THAT(Build(Shape(), elastic::Role::kMaster),
              HasSubstr(R"("terminationGracePeriodSeconds":120)"));
}

TEST(PodSpec, ClaimsAreMounted) {
  PodShape shape = Shape();
  shape.request.pull_policy = "Never";
  shape.request.volumes = {{"c", "/c", "", false}, {"d", "/d", "s", true}};
  const std::string pod = Build(shape);
  EXPECT_THAT(pod, HasSubstr(R"("imagePullPolicy":"Never")"));
  EXPECT_THAT(pod, HasSubstr(R"({"name":"sluice-volume-0","mountPath":"/c","readOnly":false})"));
  EXPECT_THAT(
      pod,
      HasSubstr(R"({"name":"sluice-volume-1","mountPath":"/d","readOnly":true,"subPath":"s"})"));
  EXPECT_THAT(pod, HasSubstr(R"("persistentVolumeClaim":{"claimName":"d"})"));
}

TEST(PodSpec, TheSecretHasTheConfigurationAndItsNameDependsOnIt) {
  EXPECT_EQ(BuildSecret(Shape(), Identity(), Process(), "s").value(),
            R"({"apiVersion":"v1","kind":"Secret","type":"Opaque","immutable":true,)"
            R"("metadata":{"name":"s","namespace":"team","labels":{)"
            R"("training.sluice/incarnation":"9","training.sluice/job":"uid-7",)"
            R"("training.sluice/role":"worker"},"ownerReferences":[{"apiVersion":)"
            R"("training.sluice/v1alpha1","kind":"TrainingJob","name":"census","uid":"uid-7"}]},)"
            R"("data":{"config":"cGxhbg==","secret":"d29yZA=="}})");
  elastic::ProcessSpec other = Process();
  other.config = "another plan";
  EXPECT_EQ(SecretName(Process()), SecretName(Process()));
  EXPECT_NE(SecretName(Process()), SecretName(other));
  other = Process();
  other.name = "job7-worker-12";
  EXPECT_EQ(SecretName(Process()), SecretName(other)) << "the same for all workers";
  EXPECT_NE(SecretName(Process()), SecretName(Process(elastic::Role::kParameterServer)));
  other.config = std::string(2 << 20, 'x');
  EXPECT_EQ(BuildSecret(Shape(), Identity(), other, "s").status().code(), Code::kResourceExhausted);
  EXPECT_THAT(BuildPod(Shape(), Identity(), Process(), "s").value(), Not(HasSubstr("word")));
}

}  // namespace
}  // namespace sluice::k8s
