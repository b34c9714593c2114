#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "elastic/ids.h"
#include "elastic/job/process.pb.h"

namespace sluice::elastic {

class MasterServer;
struct JobEndpoint;
struct TrainingJob;

// The configurations of a job's processes. All but what a process needs to reach the master is
// either part of its own or, where the endpoint says so, offered by the master, from which it is
// fetched.
class ProcessConfigs {
 public:
  ProcessConfigs(const TrainingJob& job, const JobEndpoint& endpoint)
      : job_(job), endpoint_(endpoint) {}

  void SetPartitions(uint32_t partitions) { partitions_ = partitions; }
  // Once, before any process is started: what `master` has to hand out, but for configurations.
  void Fill(MasterServer& master);
  // `master` hands out the configurations from now on: to processes that it knows by then, since
  // they may have been started before it.
  void Offer(MasterServer& master) const;

  // Serialized ProcessConfigs. Not thread-safe; workers' and servers' are independent of each
  // other.
  std::string ForWorker(const std::string& name, Incarnation incarnation);
  std::string ForServer(const std::string& name, ServerId server);

 private:
  const TrainingJob& job_;
  const JobEndpoint& endpoint_;
  uint32_t partitions_ = 0;
  ProcessConfig server_, worker_;
  std::shared_ptr<const std::string> offered_to_workers_, offered_to_servers_;
};

}  // namespace sluice::elastic
