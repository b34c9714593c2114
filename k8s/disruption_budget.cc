#include "k8s/disruption_budget.h"

#include <fmt/core.h>

#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {

std::string BuildDisruptionBudget(const Resource& kind, const std::string& namespace_name,
                                  const std::string& name, const Owner& owner,
                                  const std::string& job_uid, uint32_t available) {
  rapidjson::Document budget;
  budget.SetObject();
  auto& memory = budget.GetAllocator();
  const auto text = [&memory](std::string_view value) { return JsonText(value, memory); };
  SetMember(budget, "apiVersion", text(kind.ApiVersion()), memory);
  SetMember(budget, "kind", text("PodDisruptionBudget"), memory);
  rapidjson::Value& metadata = Within(budget, {"metadata"}, memory);
  SetMember(metadata, "name", text(name), memory);
  SetMember(metadata, "namespace", text(namespace_name), memory);
  SetMember(Within(metadata, {"labels"}, memory), kJobLabel, text(job_uid), memory);
  rapidjson::Value reference(rapidjson::kObjectType);
  SetMember(reference, "apiVersion", text(owner.api_version), memory);
  SetMember(reference, "kind", text(owner.kind), memory);
  SetMember(reference, "name", text(owner.name), memory);
  SetMember(reference, "uid", text(owner.uid), memory);
  rapidjson::Value owners(rapidjson::kArrayType);
  owners.PushBack(reference, memory);
  SetMember(metadata, "ownerReferences", std::move(owners), memory);
  rapidjson::Value& spec = Within(budget, {"spec"}, memory);
  SetMember(spec, "minAvailable", rapidjson::Value(available), memory);
  rapidjson::Value& labels = Within(spec, {"selector", "matchLabels"}, memory);
  SetMember(labels, kJobLabel, text(job_uid), memory);
  SetMember(labels, kRoleLabel, text(RoleName(elastic::Role::kParameterServer)), memory);
  return ToJson(budget);
}

std::string DisruptionBudgetPatch(uint32_t available) {
  return fmt::format(R"({{"spec":{{"minAvailable":{}}}}})", available);
}

}  // namespace sluice::k8s
