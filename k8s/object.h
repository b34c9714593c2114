#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sluice::k8s {

// A kind of object, in the form used in URLs.
struct Resource {
  std::string_view group;  // empty: the core's
  std::string_view version;
  std::string_view plural;

  std::string ApiVersion() const;  // "v1", "coordination.k8s.io/v1"
  bool operator==(const Resource&) const = default;
};
inline constexpr Resource kPods{"", "v1", "pods"};
inline constexpr Resource kSecrets{"", "v1", "secrets"};
inline constexpr Resource kServices{"", "v1", "services"};
inline constexpr Resource kConfigMaps{"", "v1", "configmaps"};
inline constexpr Resource kPodTemplates{"", "v1", "podtemplates"};
inline constexpr Resource kLeases{"coordination.k8s.io", "v1", "leases"};

// One object as sent by the API server, with the fields that every object has. The text keeps
// unknown fields.
struct Object {
  std::string json;
  std::string name;
  std::string namespace_name;
  std::string uid;
  std::string resource_version;
  std::map<std::string, std::string> labels;
  bool leaving = false;  // has a deletionTimestamp
};

// `what` begins the error. An object without a name is an error.
Result<Object> ReadObject(std::string json, std::string_view what);

// One page of a list.
struct ObjectPage {
  std::vector<Object> objects;
  std::string resource_version;
  std::string next;  // `continue`; empty: this was the last page
};
Result<ObjectPage> ReadObjectPage(std::string_view json, std::string_view what);

// Compares two versions of one resource; versions that are not numbers are not distinguished (0).
// Negative: the first is older.
int CompareVersions(std::string_view one, std::string_view other);

}  // namespace sluice::k8s
