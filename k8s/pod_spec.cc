#include "k8s/pod_spec.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "k8s/json_internal.h"
#include "k8s/pod_state.h"
#include "k8s/rights.h"

namespace sluice::k8s {
namespace {

using elastic::Role;
using rapidjson::Document;
using rapidjson::Value;
using Memory = Document::AllocatorType;

// Kubernetes stores a MiB; names and base64's padding take little of it.
constexpr size_t kMaxSecretBytes = (size_t{1} << 20) - 1024;
constexpr std::string_view kSecretVolume = "sluice-process";
constexpr std::string_view kScratchVolume = "sluice-tmp";
constexpr int kUser = 65532;  // "nonroot" in most base images; not a real user in any of them

Value Text(std::string_view text, Memory& memory) {
  return JsonText(text, memory);
}

// Sets the member only if it is missing.
void SetDefault(Value& object, std::string_view name, Value value, Memory& memory) {
  if (FindIn(object, {name}) == nullptr) {
    SetMember(object, name, std::move(value), memory);
  }
}

// The array of that name, created if it is missing.
Value& ListIn(Value& object, std::string_view name, Memory& memory) {
  SetDefault(object, name, Value(rapidjson::kArrayType), memory);
  Value& list = object[std::string(name).c_str()];
  if (!list.IsArray()) {
    list.SetArray();
  }
  return list;
}

// The element of that name; a new one replaces it or is appended.
Value& Element(Value& list, std::string_view name, Memory& memory) {
  for (Value& each : list.GetArray()) {
    if (TextIn(each, {"name"}) == name) {
      return each;
    }
  }
  Value element(rapidjson::kObjectType);
  SetMember(element, "name", Text(name, memory), memory);
  list.PushBack(element, memory);
  return list[list.Size() - 1];
}

void SetMetadata(Value& object, const PodShape& shape, const PodIdentity& identity,
                 const std::string& name, Memory& memory) {
  Value& metadata = Within(object, {"metadata"}, memory);
  SetMember(metadata, "name", Text(name, memory), memory);
  SetMember(metadata, "namespace", Text(shape.namespace_name, memory), memory);
  Value& labels = Within(metadata, {"labels"}, memory);
  for (const auto& [label, value] : LabelsOf(identity)) {
    SetMember(labels, label, Text(value, memory), memory);
  }
  if (!shape.training_job.empty() && shape.training_job.size() <= kLongestLabel) {
    SetMember(labels, kNameLabel, Text(shape.training_job, memory), memory);
  }
  Value owner(rapidjson::kObjectType);
  SetMember(owner, "apiVersion", Text(shape.owner.api_version, memory), memory);
  SetMember(owner, "kind", Text(shape.owner.kind, memory), memory);
  SetMember(owner, "name", Text(shape.owner.name, memory), memory);
  SetMember(owner, "uid", Text(shape.owner.uid, memory), memory);
  Value owners(rapidjson::kArrayType);
  if (!shape.owner.uid.empty()) {
    owners.PushBack(owner, memory);
  }
  SetMember(metadata, "ownerReferences", std::move(owners), memory);
}

void SetResources(Value& container, const PodResources& resources, Memory& memory) {
  for (const auto& [part, quantities] :
       {std::pair<std::string_view, const std::map<std::string, Quantity>&>("requests",
                                                                            resources.requests),
        {"limits", resources.limits}}) {
    for (const auto& [name, amount] : quantities) {
      SetMember(Within(container, {"resources", part}, memory), name,
                Text(amount.ToString(), memory), memory);
    }
  }
}

void SetDefaultSecurity(Value& spec, Value& container, Memory& memory) {
  Value& pod = Within(spec, {"securityContext"}, memory);
  SetDefault(pod, "runAsNonRoot", Value(true), memory);
  SetDefault(pod, "runAsUser", Value(kUser), memory);
  SetDefault(pod, "fsGroup", Value(kUser), memory);  // the group that may read the Secret
  if (FindIn(pod, {"seccompProfile"}) == nullptr) {
    SetMember(Within(pod, {"seccompProfile"}, memory), "type", Text("RuntimeDefault", memory),
              memory);
  }
  Value& ours = Within(container, {"securityContext"}, memory);
  SetDefault(ours, "allowPrivilegeEscalation", Value(false), memory);
  SetDefault(ours, "readOnlyRootFilesystem", Value(true), memory);
  if (FindIn(ours, {"capabilities"}) == nullptr) {
    Value all(rapidjson::kArrayType);
    all.PushBack(Text("ALL", memory), memory);
    SetMember(Within(ours, {"capabilities"}, memory), "drop", std::move(all), memory);
  }
}

void Mount(Value& spec, Value& container, std::string_view volume, std::string_view path,
           bool read_only, Value source, std::string_view kind, Memory& memory) {
  Value& mount = Element(ListIn(container, "volumeMounts", memory), volume, memory);
  SetMember(mount, "mountPath", Text(path, memory), memory);
  SetMember(mount, "readOnly", Value(read_only), memory);
  Value fresh(rapidjson::kObjectType);
  SetMember(fresh, "name", Text(volume, memory), memory);
  SetMember(fresh, kind, std::move(source), memory);
  Element(ListIn(spec, "volumes", memory), volume, memory) = fresh;
}

// The loss of a node takes one server, not a primary and its backup.
void KeepApart(Value& spec, const PodIdentity& identity, Memory& memory) {
  if (identity.role != Role::kParameterServer || FindIn(spec, {"affinity"}) != nullptr) {
    return;
  }
  Value term(rapidjson::kObjectType);
  SetMember(term, "weight", Value(100), memory);
  Value& pods = Within(term, {"podAffinityTerm"}, memory);
  SetMember(pods, "topologyKey", Text("kubernetes.io/hostname", memory), memory);
  Value& labels = Within(pods, {"labelSelector", "matchLabels"}, memory);
  SetMember(labels, kJobLabel, Text(identity.job_uid, memory), memory);
  SetMember(labels, kRoleLabel, Text(RoleName(identity.role), memory), memory);
  Value terms(rapidjson::kArrayType);
  terms.PushBack(term, memory);
  SetMember(Within(spec, {"affinity", "podAntiAffinity"}, memory),
            "preferredDuringSchedulingIgnoredDuringExecution", std::move(terms), memory);
}

// By the label that every kubelet gives its node: a preference cannot name the node itself.
// `relation`: "In" or "NotIn".
void PreferNodes(Value& spec, const char* relation, int weight,
                 const std::vector<std::string>& nodes, Memory& memory) {
  if (nodes.empty()) {
    return;
  }
  Value values(rapidjson::kArrayType);
  for (const std::string& node : nodes) {
    values.PushBack(Text(node, memory), memory);
  }
  Value requirement(rapidjson::kObjectType);
  SetMember(requirement, "key", Text("kubernetes.io/hostname", memory), memory);
  SetMember(requirement, "operator", Text(relation, memory), memory);
  SetMember(requirement, "values", std::move(values), memory);
  Value requirements(rapidjson::kArrayType);
  requirements.PushBack(requirement, memory);
  Value term(rapidjson::kObjectType);
  SetMember(term, "weight", Value(weight), memory);
  SetMember(Within(term, {"preference"}, memory), "matchExpressions", std::move(requirements),
            memory);
  ListIn(Within(spec, {"affinity", "nodeAffinity"}, memory),
         "preferredDuringSchedulingIgnoredDuringExecution", memory)
      .PushBack(term, memory);
}

void SetEnvironment(Value& container, Memory& memory) {
  for (const auto& [name, field] :
       {std::pair<std::string_view, std::string_view>(kAddressVariable, "status.podIP"),
        {kNodeVariable, "spec.nodeName"}}) {
    Value fresh(rapidjson::kObjectType);
    SetMember(fresh, "name", Text(name, memory), memory);
    SetMember(Within(fresh, {"valueFrom", "fieldRef"}, memory), "fieldPath", Text(field, memory),
              memory);
    Element(ListIn(container, "env", memory), name, memory) = fresh;
  }
}

// The pod's index within its role, from 0: workers are numbered in the order of their start.
uint64_t IndexOf(const PodIdentity& identity, const std::string& name) {
  if (identity.role != Role::kWorker) {
    return identity.server_index.value();
  }
  uint64_t number = 1;
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return number - std::min<uint64_t>(number, 1);
}

void SetPriority(Value& spec, const PodShape& shape, const PodIdentity& identity,
                 const std::string& name, Memory& memory) {
  std::string_view priority =
      PriorityClassOf(shape.request.Of(identity.role), IndexOf(identity, name));
  if (priority.empty()) {
    // Who needs room takes it from workers, any of which a job can lose at once.
    const bool above = shape.priority_class == kLowPriorityClass && identity.role != Role::kWorker;
    priority = above ? kHighPriorityClass : std::string_view(shape.priority_class);
  }
  if (!priority.empty()) {
    SetMember(spec, "priorityClassName", Text(priority, memory), memory);
    spec.RemoveMember("priority");
    spec.RemoveMember("preemptionPolicy");
  }
}

// Mounts the requested claims.
void MountClaims(Value& spec, Value& container, const std::vector<PodVolume>& volumes,
                 Memory& memory) {
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string name = fmt::format("sluice-volume-{}", i);
    Value source(rapidjson::kObjectType);
    SetMember(source, "claimName", Text(volumes[i].claim, memory), memory);
    Mount(spec, container, name, volumes[i].mount_path, volumes[i].read_only, std::move(source),
          "persistentVolumeClaim", memory);
    if (!volumes[i].sub_path.empty()) {
      SetMember(Element(ListIn(container, "volumeMounts", memory), name, memory), "subPath",
                Text(volumes[i].sub_path, memory), memory);
    }
  }
}

// The image is replaced by ours, and with it the policy that the API server has written into a
// PodTemplate because its image has no tag, or `latest`: ours may be on the nodes only.
void ForgetDefaultPullPolicy(Value& container) {
  const std::string_view image = TextIn(container, {"image"});
  const std::string_view name = image.substr(image.rfind('/') + 1);
  const bool latest = name.find_first_of(":@") == std::string::npos || name.ends_with(":latest");
  if (latest && TextIn(container, {"imagePullPolicy"}) == "Always") {
    container.RemoveMember("imagePullPolicy");
  }
}

void SetContainer(Value& spec, const PodShape& shape, const PodIdentity& identity,
                  const elastic::ProcessSpec& process, const std::string& secret_name,
                  Memory& memory) {
  Value& container = Element(ListIn(spec, "containers", memory), kContainerName, memory);
  ForgetDefaultPullPolicy(container);
  SetMember(container, "image", Text(shape.image, memory), memory);
  Value arguments(rapidjson::kArrayType);
  arguments.PushBack(Text(RoleName(process.role), memory), memory);
  arguments.PushBack(Text(kProcessFolder, memory), memory);
  for (const std::string_view variable : {kAddressVariable, kNodeVariable}) {
    arguments.PushBack(Text(fmt::format("$({})", variable), memory), memory);
  }
  arguments.PushBack(Text(process.name, memory), memory);
  const uint64_t number = process.role == Role::kParameterServer ? identity.server_index.value()
                                                                 : identity.incarnation.value();
  arguments.PushBack(Text(std::to_string(number), memory), memory);
  SetMember(container, "args", std::move(arguments), memory);
  // Reports its last lines without needing the right to read logs.
  SetMember(container, "terminationMessagePolicy", Text("FallbackToLogsOnError", memory), memory);
  SetResources(container, ResourcesOf(shape.request.Of(process.role), process.resources), memory);
  if (!shape.request.pull_policy.empty()) {
    SetMember(container, "imagePullPolicy", Text(shape.request.pull_policy, memory), memory);
  }
  SetEnvironment(container, memory);
  SetDefaultSecurity(spec, container, memory);
  Value secret(rapidjson::kObjectType);
  SetMember(secret, "secretName", Text(secret_name, memory), memory);
  SetMember(secret, "defaultMode", Value(0440), memory);
  Mount(spec, container, kSecretVolume, kProcessFolder, true, std::move(secret), "secret", memory);
  Mount(spec, container, kScratchVolume, "/tmp", false, Value(rapidjson::kObjectType), "emptyDir",
        memory);
  MountClaims(spec, container, shape.request.volumes, memory);
}

std::string Base64(const std::string& bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(bytes.data()),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace

Result<std::string> BuildPod(const PodShape& shape, const PodIdentity& identity,
                             const elastic::ProcessSpec& process, const std::string& secret_name) {
  Document pod;
  pod.SetObject();
  if (!shape.template_json.empty()) {
    ASSIGN_OR_RETURN(pod, ParseJsonObject(shape.template_json, "the pod template"));
  }
  Memory& memory = pod.GetAllocator();
  for (const std::string_view part : {"metadata", "spec"}) {
    const Value* given = FindIn(pod, {part});
    if (given != nullptr && !given->IsObject()) {
      return InvalidArgument(fmt::format("the pod template's {} is not an object", part));
    }
  }
  SetMember(pod, "apiVersion", Text("v1", memory), memory);
  SetMember(pod, "kind", Text("Pod", memory), memory);
  pod.RemoveMember("status");
  SetMetadata(pod, shape, identity, process.name, memory);
  Value& spec = Within(pod, {"spec"}, memory);
  SetMember(spec, "restartPolicy", Text("Never", memory), memory);
  if (identity.role != Role::kMaster) {
    SetMember(spec, "automountServiceAccountToken", Value(false), memory);
  } else {
    SetDefault(spec, "serviceAccountName", Text(AccountName(Account::kMaster), memory), memory);
  }
  SetDefault(spec, "enableServiceLinks", Value(false), memory);
  const int grace = identity.role == Role::kMaster            ? kMasterGraceSeconds
                    : identity.role == Role::kParameterServer ? kServerGraceSeconds
                                                              : shape.grace_seconds;
  SetDefault(spec, "terminationGracePeriodSeconds", Value(std::max(1, grace)), memory);
  if (NumberIn(spec, {"terminationGracePeriodSeconds"}) < 1) {
    SetMember(spec, "terminationGracePeriodSeconds", Value(1), memory);
  }
  SetPriority(spec, shape, identity, process.name, memory);
  KeepApart(spec, identity, memory);
  PreferNodes(spec, "NotIn", 100, shape.avoided_nodes, memory);
  if (identity.role == Role::kWorker) {
    PreferNodes(spec, "In", 50, shape.worker_nodes, memory);
  }
  SetContainer(spec, shape, identity, process, secret_name, memory);
  return ToJson(pod);
}

Result<std::string> BuildSecret(const PodShape& shape, const PodIdentity& identity,
                                const elastic::ProcessSpec& process,
                                const std::string& secret_name) {
  if (process.config.size() + process.secret.size() > kMaxSecretBytes) {
    return ResourceExhausted(
        fmt::format("the configuration of {} has {} bytes, and a Secret holds {}", process.name,
                    process.config.size() + process.secret.size(), kMaxSecretBytes));
  }
  Document secret;
  secret.SetObject();
  Memory& memory = secret.GetAllocator();
  SetMember(secret, "apiVersion", Text("v1", memory), memory);
  SetMember(secret, "kind", Text("Secret", memory), memory);
  SetMember(secret, "type", Text("Opaque", memory), memory);
  SetMember(secret, "immutable", Value(true), memory);
  SetMetadata(secret, shape, identity, secret_name, memory);
  Value& data = Within(secret, {"data"}, memory);
  SetMember(data, "config", Text(Base64(process.config), memory), memory);
  SetMember(data, "secret", Text(Base64(process.secret), memory), memory);
  return ToJson(secret);
}

std::string SecretName(const elastic::ProcessSpec& process) {
  // FNV-1a: distinguishes, hides nothing.
  uint64_t hash = 14695981039346656037ULL;
  for (const std::string* const part : {&process.config, &process.secret}) {
    for (const char character : *part) {
      hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211ULL;
    }
    hash = (hash ^ 0xFFU) * 1099511628211ULL;
  }
  // "job7-worker-3": without the number.
  return fmt::format("{}-{:016x}", process.name.substr(0, process.name.rfind('-')), hash);
}

}  // namespace sluice::k8s
