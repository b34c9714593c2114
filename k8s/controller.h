#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "elastic/fleet/autoscaler.h"
#include "k8s/api_client.h"
#include "k8s/cluster_view.h"
#include "k8s/controller_figures.h"
#include "k8s/event_recorder.h"
#include "k8s/lease.h"
#include "k8s/unattended_jobs.h"
#include "k8s/watch.h"

namespace sluice::k8s {

// The controller's, of which a cluster has one. The holder of the Lease writes grants.
inline constexpr std::string_view kControllerNamespace = "sluice-system";
inline constexpr char kControllerLease[] = "sluice-controller";

struct ControllerOptions {
  std::string namespace_name;  // of its Lease
  std::string holder;          // unique among all controllers ever
  elastic::AutoscalerOptions autoscaler = {};
};

// Shares a cluster's idle capacity among its TrainingJobs: follows nodes, pods, TrainingJobs and
// quotas, decides with elastic::Autoscale, and writes `status.grant`; and tells the TrainingJobs
// that no gateway takes that they wait for one (the condition Queued, and an Event). It makes and
// deletes no pod. Of several controllers the holder of the Lease `sluice-controller` acts. When
// there is none, each job keeps its last grant. Run is called once, by one thread.
class Controller {
 public:
  Controller(ApiClient& client, ControllerOptions options);
  ~Controller();

  // Returns OkStatus when it is stopped; an error if a first list fails. Failures later on are
  // logged and repaired by the next decision.
  Status Run(const std::stop_token& stop) EXCLUDES(mutex_);

  // Thread-safe.
  ControllerFigures figures() const EXCLUDES(mutex_);
  std::map<std::string, uint64_t> watch_restarts() const EXCLUDES(mutex_);

 private:
  using Reader = void (ClusterView::*)(const ObjectChange&);
  Status Follow(const Resource& resource, Reader reader, double patience_seconds,
                const std::stop_token& stop) EXCLUDES(mutex_);
  void WaitForWork(const std::stop_token& stop) EXCLUDES(mutex_);
  void Lead(const std::stop_token& stop) EXCLUDES(mutex_);
  void Decide(const std::stop_token& stop) EXCLUDES(mutex_);
  void TellUnattended(const std::stop_token& stop) EXCLUDES(mutex_);
  Status Tell(const UnattendedJobs::Job& job, const std::stop_token& stop) EXCLUDES(mutex_);
  void Write(const ClusterView::Job& job, const Grant& grant, const std::stop_token& stop)
      EXCLUDES(mutex_);

  ApiClient& client_;
  const ControllerOptions options_;
  // Used by Run only.
  LeaseClaim claim_;
  TimePoint next_round_{};
  elastic::AutoscalerHistory history_;
  EventRecorder events_;

  mutable Mutex mutex_;
  ClusterView view_ GUARDED_BY(mutex_);
  UnattendedJobs unattended_ GUARDED_BY(mutex_);
  std::condition_variable_any changed_;
  bool news_ GUARDED_BY(mutex_) = false;
  std::optional<TimePoint> due_ GUARDED_BY(mutex_);  // the next decision
  ControllerFigures figures_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<ObjectWatch>> watches_ GUARDED_BY(mutex_);
};

}  // namespace sluice::k8s
