#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "base/status.h"
#include "k8s/api_client.h"
#include "k8s/object.h"
#include "k8s/pod_spec.h"

namespace sluice::executor {

// A PodDisruptionBudget that follows the number of a job's parameter servers: a drain of nodes may
// evict one of them at a time, and none while another one's replacement runs, but does not hold its
// copies yet. One server has none, since it would block every drain. The job can train without it:
// failures are logged and tried again. Thread-safe.
class ServerBudget {
 public:
  struct Job {
    std::string namespace_name, uid, name;
    k8s::Owner owner;
  };
  // Whether this is still the job's newest master; false: not now, ask again.
  using MayWrite = std::function<bool(const std::stop_token& stop)>;
  ServerBudget(k8s::ApiClient& client, Job job, MayWrite may_write);
  ~ServerBudget();

  // Returns at once. `complete`: each of them holds its copies. 0: not known.
  void Keep(uint32_t servers, bool complete) EXCLUDES(mutex_);
  // None of them may be evicted until the next Keep: what they hold is not known.
  void KeepAll() EXCLUDES(mutex_);

 private:
  void Run(const std::stop_token& stop) EXCLUDES(mutex_);
  Status Write(uint32_t available, const std::stop_token& stop);
  Status WriteAs(const k8s::Resource& kind, uint32_t available, const std::stop_token& stop,
                 bool& unknown_kind);

  k8s::ApiClient& client_;
  const Job job_;
  const std::string name_;
  const MayWrite may_write_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<uint32_t> wanted_ GUARDED_BY(mutex_);  // so many stay; 0: there is no budget
  std::jthread thread_;                                // last: uses the others
};

}  // namespace sluice::executor
