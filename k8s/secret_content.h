#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "k8s/object.h"

namespace sluice::k8s {

// The content of a Secret, by key. If it is damaged, an error that reveals nothing of the content.
Result<std::map<std::string, std::string>> SecretContent(const Object& secret);

}  // namespace sluice::k8s
