#include "k8s/pod_template.h"

#include <fmt/core.h>

#include <algorithm>

#include "k8s/json_internal.h"
#include "k8s/pod_state.h"

namespace sluice::k8s {

namespace {

// True: `check` is, for our container. There may be no template, or BuildPod reports what is wrong
// with it.
template <typename Check>
bool OurContainer(std::string_view template_json, const Check& check) {
  const Result<rapidjson::Document> given = ParseJsonObject(template_json, "the pod template");
  if (!given.ok()) {
    return false;
  }
  const auto containers = ArrayIn(*given, {"spec", "containers"});
  return std::any_of(containers.begin(), containers.end(), [&](const rapidjson::Value& container) {
    return TextIn(container, {"name"}) == kContainerName && check(container);
  });
}

}  // namespace

bool MountsFolder(std::string_view template_json, std::string_view folder) {
  return OurContainer(template_json, [folder](const rapidjson::Value& container) {
    const auto mounts = ArrayIn(container, {"volumeMounts"});
    return std::any_of(mounts.begin(), mounts.end(), [folder](const rapidjson::Value& mount) {
      const std::string_view path = TextIn(mount, {"mountPath"});
      return !path.empty() && folder.starts_with(path) &&
             (folder.size() == path.size() || path.back() == '/' || folder[path.size()] == '/');
    });
  });
}

bool GivesMemory(std::string_view template_json) {
  return OurContainer(template_json, [](const rapidjson::Value& container) {
    return FindIn(container, {"resources", "requests", "memory"}) != nullptr ||
           FindIn(container, {"resources", "limits", "memory"}) != nullptr;
  });
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
