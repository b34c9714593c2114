#include "k8s/service_spec.h"

#include <fmt/core.h>

#include <charconv>
#include <utility>

#include "elastic/fleet/fleet.h"
#include "k8s/json_internal.h"
#include "k8s/pod_labels.h"

namespace sluice::k8s {
namespace {

using rapidjson::Document;
using rapidjson::Value;

constexpr std::string_view kSecretNote = "training.sluice/secret";
constexpr std::string_view kImageNote = "training.sluice/image";
constexpr std::string_view kNumberNote = "training.sluice/job-number";

int64_t ReadInteger(std::string_view text) {
  int64_t number = -1;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() && read.ptr == text.data() + text.size() ? number : -1;
}

}  // namespace

std::string BuildJobService(const JobService& service) {
  Document json;
  json.SetObject();
  auto& memory = json.GetAllocator();
  const auto text = [&memory](std::string_view value) { return JsonText(value, memory); };
  SetMember(json, "apiVersion", text("v1"), memory);
  SetMember(json, "kind", text("Service"), memory);
  Value& metadata = Within(json, {"metadata"}, memory);
  SetMember(metadata, "name", text(service.name), memory);
  SetMember(metadata, "namespace", text(service.namespace_name), memory);
  SetMember(Within(metadata, {"labels"}, memory), kJobLabel, text(service.job_uid), memory);
  if (!service.owner.uid.empty()) {
    Value owner(rapidjson::kObjectType);
    SetMember(owner, "apiVersion", text(service.owner.api_version), memory);
    SetMember(owner, "kind", text(service.owner.kind), memory);
    SetMember(owner, "name", text(service.owner.name), memory);
    SetMember(owner, "uid", text(service.owner.uid), memory);
    Value owners(rapidjson::kArrayType);
    owners.PushBack(owner, memory);
    SetMember(metadata, "ownerReferences", std::move(owners), memory);
  }
  Value& notes = Within(metadata, {"annotations"}, memory);
  SetMember(notes, kSecretNote, text(service.secret), memory);
  SetMember(notes, kImageNote, text(service.image), memory);
  SetMember(notes, kNumberNote, text(std::to_string(service.job_number)), memory);
  Value& selector = Within(json, {"spec", "selector"}, memory);
  SetMember(selector, kJobLabel, text(service.job_uid), memory);
  SetMember(selector, kRoleLabel, text(elastic::RoleName(elastic::Role::kMaster)), memory);
  SetMember(selector, kIncarnationLabel, text(std::to_string(service.master)), memory);
  Value& spec = Within(json, {"spec"}, memory);
  // A master must be reachable from its first moment, regardless of probes.
  SetMember(spec, "publishNotReadyAddresses", Value(true), memory);
  Value port(rapidjson::kObjectType);
  SetMember(port, "port", Value(service.port), memory);
  SetMember(port, "targetPort", Value(service.port), memory);
  Value ports(rapidjson::kArrayType);
  ports.PushBack(port, memory);
  SetMember(spec, "ports", std::move(ports), memory);
  return ToJson(json);
}

std::optional<JobService> ReadJobService(const Object& object) {
  const Result<Document> json = ParseJsonObject(object.json, "a Service");
  if (!json.ok()) {
    return std::nullopt;
  }
  const auto note = [&json](std::string_view name) {
    return std::string(TextIn(*json, {"metadata", "annotations", name}));
  };
  JobService service;
  service.namespace_name = object.namespace_name;
  service.name = object.name;
  service.job_uid = TextIn(*json, {"metadata", "labels", kJobLabel});
  service.secret = note(kSecretNote);
  service.image = note(kImageNote);
  service.job_number = ReadInteger(note(kNumberNote));
  service.master = ReadInteger(TextIn(*json, {"spec", "selector", kIncarnationLabel}));
  for (const Value& owner : ArrayIn(*json, {"metadata", "ownerReferences"})) {
    service.owner = {std::string(TextIn(owner, {"apiVersion"})),
                     std::string(TextIn(owner, {"kind"})), std::string(TextIn(owner, {"name"})),
                     std::string(TextIn(owner, {"uid"}))};
  }
  for (const Value& port : ArrayIn(*json, {"spec", "ports"})) {
    service.port = static_cast<int>(NumberIn(port, {"port"}));
  }
  const bool ours = !service.job_uid.empty() && !service.secret.empty() && service.job_number > 0 &&
                    service.master >= 0;
  return ours ? std::optional(service) : std::nullopt;
}

Result<std::string> LeadTo(const Object& object, int64_t master) {
  ASSIGN_OR_RETURN(Document json, ParseJsonObject(object.json, "a Service"));
  if (ReadInteger(TextIn(json, {"spec", "selector", kIncarnationLabel})) >= master) {
    return object.json;
  }
  auto& memory = json.GetAllocator();
  SetMember(Within(json, {"spec", "selector"}, memory), kIncarnationLabel,
            JsonText(std::to_string(master), memory), memory);
  return ToJson(json);
}

Result<std::string> ServiceAddress(const Object& object) {
  ASSIGN_OR_RETURN(const Document json, ParseJsonObject(object.json, "a Service"));
  const std::string_view address = TextIn(json, {"spec", "clusterIP"});
  int64_t port = 0;
  for (const Value& each : ArrayIn(json, {"spec", "ports"})) {
    port = NumberIn(each, {"port"});
  }
  if (address.empty() || address == "None" || port == 0) {
    return Unavailable(fmt::format("Service {} has no address", object.name));
  }
  return address.find(':') == std::string_view::npos ? fmt::format("{}:{}", address, port)
                                                     : fmt::format("[{}]:{}", address, port);
}

}  // namespace sluice::k8s
