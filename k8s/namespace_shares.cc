#include "k8s/namespace_shares.h"

#include <algorithm>

namespace sluice::k8s {

void ShareByNamespaces(const std::map<std::string, QuotaFacts>& quotas,
                       ClusterView::Snapshot& snapshot) {
  std::map<std::string, double> shares;
  for (const auto& [uid, quota] : quotas) {
    if (quota.share) {
      double& share = shares[quota.namespace_name];
      share = std::max(share, *quota.share);
    }
  }
  std::map<std::string, double> jobs;
  for (const ClusterView::Job& job : snapshot.jobs) {
    ++jobs[job.namespace_name];
  }
  for (size_t i = 0; i < snapshot.jobs.size(); ++i) {
    const std::string& where = snapshot.jobs[i].namespace_name;
    const auto share = shares.find(where);
    snapshot.state.jobs[i].weight = (share == shares.end() ? 1 : share->second) / jobs.at(where);
  }
}

}  // namespace sluice::k8s
