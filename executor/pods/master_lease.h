#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "k8s/api_client.h"
#include "k8s/lease.h"

namespace sluice::executor {

class PodJobConfig;

// A master's sign of life: a Lease with its pod's name, which it keeps renewing. A master that
// stops renewing is succeeded by the next one, even if the state of its node is unknown
// (JobKeeper). Thread-safe.
class MasterLease {
 public:
  // A master that has not renewed for this long is given up and succeeded.
  static constexpr int kSilenceSeconds = 8;
  static constexpr double kRenewSeconds = 2;
  // The last words of a master that is not the newest.
  static constexpr char kFollowed[] = "there is a later master: the job goes on with that one";

  // `superseded`: there is a later master; called by whichever thread has learnt it.
  MasterLease(k8s::ApiClient& client, const PodJobConfig& config, int64_t number,
              std::function<void()> superseded);
  ~MasterLease();

  // Whether this is the newest master, by the API server; false also if that does not answer. To
  // hold the lease is not enough: a master whose pod is deleted is succeeded at once.
  bool IsNewest(const std::stop_token& stop) EXCLUDES(mutex_);
  // Whether there is a later master, by the API server, which is asked until it answers, or until
  // `stop` (false).
  bool IsFollowed(const std::stop_token& stop);

 private:
  // nullopt: the API server does not answer.
  std::optional<bool> AskForLater(const std::stop_token& stop);
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  bool Held() EXCLUDES(mutex_);

  k8s::ApiClient& client_;
  const std::string namespace_, masters_;  // the label selector
  const int64_t number_;
  const std::function<void()> superseded_;
  Mutex mutex_;
  std::condition_variable_any never_;
  TimePoint held_until_ GUARDED_BY(mutex_){};
  k8s::LeaseClaim claim_;  // used by the thread only
  std::jthread thread_;    // last: uses the others
};

}  // namespace sluice::executor
