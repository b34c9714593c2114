#include "k8s/pod_template.h"

#include <fmt/core.h>

#include "k8s/json_internal.h"
#include "k8s/pod_state.h"

namespace sluice::k8s {

bool MountsFolder(std::string_view template_json, std::string_view folder) {
  const Result<rapidjson::Document> given = ParseJsonObject(template_json, "the pod template");
  if (!given.ok()) {
    return false;  // there is none, or BuildPod reports what is wrong with it
  }
  for (const rapidjson::Value& container : ArrayIn(*given, {"spec", "containers"})) {
    if (TextIn(container, {"name"}) != kContainerName) {
      continue;
    }
    for (const rapidjson::Value& mount : ArrayIn(container, {"volumeMounts"})) {
      const std::string_view path = TextIn(mount, {"mountPath"});
      if (!path.empty() && folder.starts_with(path) &&
          (folder.size() == path.size() || path.back() == '/' || folder[path.size()] == '/')) {
        return true;
      }
    }
  }
  return false;
}

Result<std::string> TemplateOf(const Object& pod_template) {
  ASSIGN_OR_RETURN(const rapidjson::Document json,
                   ParseJsonObject(pod_template.json, "a PodTemplate"));
  const rapidjson::Value* given = FindIn(json, {"template"});
  if (given == nullptr || !given->IsObject()) {
    return InvalidArgument(fmt::format("the PodTemplate '{}' has no template", pod_template.name));
  }
  rapidjson::Document copy;
  copy.CopyFrom(*given, copy.GetAllocator());
  return ToJson(copy);
}

}  // namespace sluice::k8s
