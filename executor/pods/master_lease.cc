#include "executor/pods/master_lease.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"
#include "k8s/api_verbs.h"
#include "k8s/pod_labels.h"

namespace sluice::executor {
namespace {

k8s::LeaseClaim::Place PlaceOf(const PodJobConfig& config, int64_t number) {
  const std::string pod = MasterPodName(PodJobName(config.job(), config.uid()), number);
  return {config.namespace_name(), pod, pod, MasterLease::kSilenceSeconds, OwnerOf(config)};
}

}  // namespace

MasterLease::MasterLease(k8s::ApiClient& client, const PodJobConfig& config, int64_t number,
                         std::function<void()> superseded)
    : client_(client),
      namespace_(config.namespace_name()),
      masters_(fmt::format("{}={},{}={}", k8s::kJobLabel, config.uid(), k8s::kRoleLabel,
                           elastic::RoleName(elastic::Role::kMaster))),
      number_(number),
      superseded_(std::move(superseded)),
      claim_(client, PlaceOf(config, number)),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

MasterLease::~MasterLease() = default;

bool MasterLease::Held() {
  const MutexLock lock(mutex_);
  return client_.clock().Now() < held_until_;
}

void MasterLease::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    // It has lapsed, or was never held: there may be a successor.
    if (!Held() && !IsNewest(stop) && !stop.stop_requested()) {
      log::Warn("master={} does not know whether it is the newest", number_);
    }
    const TimePoint begun = client_.clock().Now();
    const auto renewed = claim_.Round(stop);
    if (!renewed.ok() && !stop.stop_requested()) {
      log::Warn("master={} its lease is not renewed: {}", number_, renewed.status().message());
    }
    MutexLock lock(mutex_);
    if (renewed.ok() && renewed->ours) {
      held_until_ = begun + std::chrono::seconds(kSilenceSeconds);
    }
    never_.wait_for(lock.native(), stop, std::chrono::duration<double>(kRenewSeconds),
                    [] { return false; });
  }
}

bool MasterLease::IsNewest(const std::stop_token& stop) {
  const std::optional<bool> followed = AskForLater(stop);
  if (followed.value_or(false)) {
    superseded_();
  }
  return followed.has_value() && !*followed;
}

bool MasterLease::IsFollowed(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (const std::optional<bool> followed = AskForLater(stop)) {
      return *followed;
    }
    MutexLock lock(mutex_);
    never_.wait_for(lock.native(), stop, std::chrono::duration<double>(kRenewSeconds),
                    [] { return false; });
  }
  return false;
}

std::optional<bool> MasterLease::AskForLater(const std::stop_token& stop) {
  const k8s::Listing masters = k8s::ListObjects(client_, {k8s::kPods, namespace_, masters_}, stop);
  if (!masters.ok()) {
    return std::nullopt;
  }
  return std::any_of(masters.objects.begin(), masters.objects.end(), [this](const auto& pod) {
    const auto identity = k8s::IdentityOf(pod.labels);
    return identity.has_value() && static_cast<int64_t>(identity->incarnation.value()) > number_;
  });
}

}  // namespace sluice::executor
