#include "k8s/cluster_listing.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

#include "k8s/api_verbs.h"
#include "k8s/cluster_objects.h"
#include "k8s/rights.h"

namespace sluice::k8s {

Result<ClusterView> ListCluster(ApiClient& client, const std::stop_token& stop) {
  using Reader = void (ClusterView::*)(const ObjectChange&);
  const std::pair<Resource, Reader> kinds[] = {{kNodes, &ClusterView::OnNode},
                                               {kPods, &ClusterView::OnPod},
                                               {kTrainingJobs, &ClusterView::OnTrainingJob},
                                               {kQuotas, &ClusterView::OnQuota}};
  ClusterView view;
  std::vector<std::string> missing;
  for (const auto& [resource, read] : kinds) {
    Listing listing = ListObjects(client, {resource, "", ""}, stop);
    if (listing.fault == Fault::kForbidden) {
      missing.push_back(fmt::format("list {}", resource.plural));
      continue;
    }
    RETURN_IF_ERROR(listing.status);
    for (Object& object : listing.objects) {
      (view.*read)({ObjectChange::Kind::kAppeared, std::move(object)});
    }
  }
  if (missing.empty()) {
    return view;
  }
  return Status(Code::kPermissionDenied, fmt::format("rights are missing in the whole cluster: {}",
                                                     fmt::join(missing, ", ")))
      .Hint(fmt::format("an administrator of the cluster gives them: kubectl create "
                        "clusterrolebinding {0} --clusterrole={0} --serviceaccount=NAMESPACE:{0}",
                        AccountName(Account::kGateway)));
}

}  // namespace sluice::k8s
