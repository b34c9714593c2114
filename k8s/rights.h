#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/api_request.h"

namespace sluice::k8s {

// Whose calls they are: a gateway (or another process that keeps masters running), a job's master,
// the controller of all jobs. Workers and servers make no calls.
enum class Account { kGateway, kMaster, kController };
// "sluice-gateway": of its service account, role and binding.
std::string AccountName(Account account);

// What an account may do with one kind of object.
struct Right {
  Resource resource;
  std::string_view subresource;  // "status"; empty: none
  std::vector<Verb> verbs;
  bool cluster = false;  // in every namespace, or for objects without a namespace
  bool needed = true;    // false: without it, only what asks for it fails
};
// All rights that it uses and no others: the manifests grant them, CheckRights verifies those that
// are needed.
std::vector<Right> RightsOf(Account account);

// Asks the API server about each right; an error if it cannot be asked, or kPermissionDenied with
// every missing right in its hint: "create pods, watch pods, patch trainingjobs/status".
Status CheckRights(ApiClient& client, Account account, const std::string& namespace_name,
                   const std::stop_token& stop);

}  // namespace sluice::k8s
