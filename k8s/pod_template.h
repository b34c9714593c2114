#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "k8s/object.h"

// What an administrator's template says of the pods that are made from it. Pure.
namespace sluice::k8s {

// The `template` of a PodTemplate, for PodShape.
Result<std::string> TemplateOf(const Object& pod_template);
// Whether the template gives our container a volume that contains the folder.
bool MountsFolder(std::string_view template_json, std::string_view folder);
// Whether the template says how much memory our container requests, or may use.
bool GivesMemory(std::string_view template_json);

}  // namespace sluice::k8s
