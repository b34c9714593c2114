#include "executor/pods/silent_masters.h"

#include <utility>

#include "base/log.h"
#include "executor/pods/master_lease.h"

namespace sluice::executor {

std::vector<std::string> SilentMasters::Look(const std::map<std::string, Running>& running,
                                             const std::stop_token& stop) {
  std::vector<std::string> silent;
  const TimePoint now = client_.clock().Now();
  if (SecondsBetween(looked_, now) < MasterLease::kRenewSeconds) {
    return silent;
  }
  looked_ = now;
  std::erase_if(seen_, [&](const auto& seen) { return !running.contains(seen.first); });
  for (const auto& [uid, master] : running) {
    Seen& seen = seen_[uid];
    if (seen.number != master.number ||
        SecondsBetween(seen.answered, now) > 2 * MasterLease::kRenewSeconds) {
      seen.number = master.number;
      seen.claim = std::make_unique<k8s::LeaseClaim>(
          client_,
          k8s::LeaseClaim::Place{namespace_, master.pod, "", MasterLease::kSilenceSeconds, {}});
    }
    const auto view = seen.claim->Look(stop);
    if (!view.ok()) {
      log::Warn("kubernetes lease={} is not read: {}", master.pod, view.status().message());
      continue;
    }
    seen.answered = client_.clock().Now();
    if (view->holder == master.pod && view->expired) {
      silent.push_back(uid);
    }
  }
  return silent;
}

}  // namespace sluice::executor
