#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::planner {

// What statements may put into the pods of their jobs, which run in the operator's namespace: the
// operator lists it, and nothing else is allowed. Immutable once read.
struct PodsAllowed {
  struct Claim {
    std::string mount_path;  // where pods have it, in every statement
    std::string sub_path;    // statements mount this folder of it, or one inside; "": all of it
  };
  std::set<std::string> templates;      // the PodTemplates of engine.template
  std::map<std::string, Claim> claims;  // by their names, for engine.volume

  // `text`: template=NAME, claim=NAME:MOUNT_PATH and claim=NAME:MOUNT_PATH:SUB_PATH, separated by
  // commas; "" allows nothing. InvalidArgument names the part that is wrong.
  static Result<PodsAllowed> Read(std::string_view text);
};

// Whether pods may have a volume there: not in a folder of their system, nor where Kubernetes and
// we keep secrets. `path`: absolute.
bool IsMountPath(std::string_view path);
// Whether a path inside a volume stays there: relative, without "..".
bool IsSubPath(std::string_view path);

}  // namespace sluice::planner
