#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"

// Operations of more than one call, or whose result is part of an answer.
namespace sluice::k8s {

// Objects of one kind.
struct Selection {
  Resource resource;
  std::string namespace_name;  // empty: all namespaces
  std::string label_selector;  // empty: all
};

struct Listing {
  Fault fault = Fault::kNone;
  Status status;
  std::vector<Object> objects;
  std::string resource_version;

  bool ok() const { return fault == Fault::kNone; }
};
// The current objects (a consistent read), in pages of `page_size`. If its `continue` has expired,
// the list begins anew.
Listing ListObjects(ApiClient& client, const Selection& selection, const std::stop_token& stop,
                    int page_size = 500);

struct ObjectAnswer {
  Fault fault = Fault::kNone;
  Status status;
  Object object;

  bool ok() const { return fault == Fault::kNone; }
};
ObjectAnswer GetObject(ApiClient& client, const Resource& resource,
                       const std::string& namespace_name, const std::string& name,
                       const std::stop_token& stop);

// Creates the objects (JSON with metadata.name) at once. An object that exists already, because the
// answer to our own creation was lost or because an earlier master made it, is adopted if it has
// every label of ours with the same value and is not being deleted. Otherwise kAlreadyExists.
struct Creation {
  Resource resource;
  std::string namespace_name;
  std::string json;
};
std::vector<ObjectAnswer> CreateAll(ApiClient& client, const std::vector<Creation>& creations,
                                    const std::stop_token& stop);
// The same for objects whose names follow from what they hold: one that exists already is as it
// should be. It is not read, which would need another right, and its answer has no object.
std::vector<ObjectAnswer> CreateMissing(ApiClient& client, const std::vector<Creation>& creations,
                                        const std::stop_token& stop);

// Reads the object, lets `edit` change it, and writes it back; if another client was faster, starts
// again. Unknown fields survive unless `edit` removes them. If `edit` returns its input, nothing is
// written.
using Edit = std::function<Result<std::string>(const Object& object)>;
ObjectAnswer ChangeObject(ApiClient& client, const Resource& resource,
                          const std::string& namespace_name, const std::string& name,
                          const Edit& edit, const std::stop_token& stop);

// Applies a JSON merge patch; `subresource` "status" for fields that only its writer may change.
ObjectAnswer PatchObject(ApiClient& client, const Resource& resource,
                         const std::string& namespace_name, const std::string& name,
                         const std::string& subresource, const std::string& patch,
                         const std::stop_token& stop);

// Deletes the object, but not a later one with its name (`uid` empty: any). Its absence is success.
// The grace period is in whole seconds, and never 0: the API would then forget a pod that may still
// run.
struct Deletion {
  Resource resource;
  std::string namespace_name;
  std::string name;
  std::string uid;
  int grace_seconds = 1;
};
std::vector<ApiAnswer> DeleteAll(ApiClient& client, const std::vector<Deletion>& deletions,
                                 const std::stop_token& stop);

}  // namespace sluice::k8s
