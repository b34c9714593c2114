#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "k8s/api_client.h"
#include "k8s/lease.h"

namespace sluice::executor {

class PodJobConfig;

// A master's sign of life: the Lease that has its pod's name, renewed all the time. One that does
// not renew it is followed by the next master, also where nobody can say what became of its node
// (JobKeeper). Thread-safe.
class MasterLease {
 public:
  // It is given up, and followed, when it has said nothing for so long.
  static constexpr int kSilenceSeconds = 8;
  static constexpr double kRenewSeconds = 2;

  // `superseded`: there is a later master; called once, from a thread of its own.
  MasterLease(k8s::ApiClient& client, const PodJobConfig& config, int64_t number,
              std::function<void()> superseded);
  ~MasterLease();

  // Whether this is the newest master as far as anybody knows. As long as the lease is held nobody
  // is asked; afterwards (a process that was stopped, an API server that was away) the API is, and
  // where it does not answer nobody knows.
  bool IsNewest(const std::stop_token& stop) EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  bool Held() EXCLUDES(mutex_);

  k8s::ApiClient& client_;
  const std::string namespace_, masters_;  // the label selector
  const int64_t number_;
  const std::function<void()> superseded_;
  Mutex mutex_;
  std::condition_variable_any never_;
  TimePoint held_until_ GUARDED_BY(mutex_){};
  k8s::LeaseClaim claim_;  // the thread's own
  std::jthread thread_;    // last: uses the others
};

}  // namespace sluice::executor
