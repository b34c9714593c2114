#include "planner/pods_allowed.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace sluice::planner {
namespace {

constexpr std::string_view kSystemFolders[] = {"bin",   "boot",  "dev",  "etc",  "lib",
                                               "lib32", "lib64", "proc", "root", "run",
                                               "sbin",  "sys",   "usr",  "var"};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// Without empty steps, "." and "..", and without ':', which Kubernetes refuses.
bool IsPlainPath(std::string_view path) {
  const std::vector<std::string_view> steps = Split(path, '/');
  return path.find(':') == std::string_view::npos &&
         std::none_of(steps.begin(), steps.end(), [](std::string_view step) {
           return step.empty() || step == "." || step == "..";
         });
}

}  // namespace

bool IsMountPath(std::string_view path) {
  if (!path.starts_with('/') || !IsPlainPath(path.substr(1))) {
    return false;
  }
  const std::string_view top = Split(path.substr(1), '/').front();
  return std::find(std::begin(kSystemFolders), std::end(kSystemFolders), top) ==
         std::end(kSystemFolders);
}

bool IsSubPath(std::string_view path) {
  return IsPlainPath(path);
}

Result<PodsAllowed> PodsAllowed::Read(std::string_view text) {
  PodsAllowed allowed;
  for (std::string_view part : Split(text, ',')) {
    while (part.starts_with(' ')) {
      part.remove_prefix(1);
    }
    if (part.empty()) {
      continue;
    }
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view kind = part.substr(0, equals);
    const std::vector<std::string_view> values =
        Split(part.substr(std::min(equals + 1, part.size())), ':');
    const auto wrong = [&part](std::string_view what) {
      return InvalidArgument(fmt::format("pods allow '{}': {}", part, what))
          .Hint("template=NAME, claim=NAME:MOUNT_PATH or claim=NAME:MOUNT_PATH:SUB_PATH");
    };
    if (kind == "template" && values.size() == 1 && !values[0].empty()) {
      allowed.templates.emplace(values[0]);
      continue;
    }
    if (kind != "claim" || values.size() < 2 || values.size() > 3 || values[0].empty()) {
      return wrong("what is that");
    }
    if (!IsMountPath(values[1])) {
      return wrong("a mount path is absolute, without '..', and not in a folder of the system");
    }
    if (values.size() == 3 && !IsSubPath(values[2])) {
      return wrong("a sub-path is relative, and without '..'");
    }
    allowed.claims[std::string(values[0])] = {
        std::string(values[1]), values.size() == 3 ? std::string(values[2]) : std::string()};
  }
  return allowed;
}

}  // namespace sluice::planner
