#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"

// What is more than one call, or has to be read out of the answer.
namespace sluice::k8s {

// Objects of one kind.
struct Selection {
  Resource resource;
  std::string namespace_name;  // empty: of all
  std::string label_selector;  // empty: all
};

struct Listing {
  Fault fault = Fault::kNone;
  Status status;
  std::vector<Object> objects;
  std::string resource_version;

  bool ok() const { return fault == Fault::kNone; }
};
// As they are now (a consistent read), by pages of `page_size`. Where its `continue` has become too
// old the list begins anew.
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

// Creates the objects (JSON with metadata.name) at once. Where one is there already, because the
// answer to our own creation was lost or because a master before us made it, it is adopted: when it
// has every label of ours with the same value and is not being deleted. Otherwise kAlreadyExists.
struct Creation {
  Resource resource;
  std::string namespace_name;
  std::string json;
};
std::vector<ObjectAnswer> CreateAll(ApiClient& client, const std::vector<Creation>& creations,
                                    const std::stop_token& stop);

// Reads the object, lets `edit` change it, and writes it back; where somebody else was faster,
// again from the start. Unknown fields survive as far as `edit` leaves them alone. `edit` giving
// back what it got writes nothing.
using Edit = std::function<Result<std::string>(const Object& object)>;
ObjectAnswer ChangeObject(ApiClient& client, const Resource& resource,
                          const std::string& namespace_name, const std::string& name,
                          const Edit& edit, const std::stop_token& stop);

// Applies a JSON merge patch; `subresource` "status" for what only its writer may change.
ObjectAnswer PatchObject(ApiClient& client, const Resource& resource,
                         const std::string& namespace_name, const std::string& name,
                         const std::string& subresource, const std::string& patch,
                         const std::stop_token& stop);

// Deletes the object, but no other one that has its name meanwhile (`uid` empty: whichever it is).
// Its absence is success. Grace is whole seconds, and never 0: the API would then forget a pod that
// may still run.
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
