#pragma once

#include <map>
#include <stop_token>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "k8s/api_client.h"

namespace sluice::executor {

// What the masters of jobs mount, so that a Secret that somebody has deleted can be made again.
// Know is thread-safe; the rest is one thread's.
class KeptSecrets {
 public:
  struct Job {
    std::string secret;   // its name
    bool starts = false;  // its master has a node and does not run yet
  };
  KeptSecrets(k8s::ApiClient& client, std::string namespace_name)
      : client_(client), namespace_(std::move(namespace_name)) {}

  // `json`: the Secret of the job with that uid.
  void Know(const std::string& uid, std::string json) EXCLUDES(mutex_);

  // `jobs`: all that there are, by uid; others are forgotten. Reads the Secrets that are not known
  // yet.
  void Look(const std::map<std::string, Job>& jobs, const std::stop_token& stop) EXCLUDES(mutex_);
  // Every ten seconds: creates those that are missing of masters that start.
  void RestoreStarting(const std::map<std::string, Job>& jobs, const std::stop_token& stop)
      EXCLUDES(mutex_);
  // True: the job's Secret is there, perhaps since now.
  bool Restore(const std::string& uid, const std::stop_token& stop) EXCLUDES(mutex_);

 private:
  k8s::ApiClient& client_;
  const std::string namespace_;
  Mutex mutex_;
  std::map<std::string, std::string> known_ GUARDED_BY(mutex_);  // JSON by a job's uid
  std::map<std::string, TimePoint> asked_;                       // when it was last tried to read
  TimePoint restored_{};
};

}  // namespace sluice::executor
