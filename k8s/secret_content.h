#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "k8s/object.h"

namespace sluice::k8s {

// What a Secret holds, by key. An error, which says nothing of the content, where it is damaged.
Result<std::map<std::string, std::string>> SecretContent(const Object& secret);

}  // namespace sluice::k8s
