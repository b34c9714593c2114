#pragma once

#include <cstdint>
#include <string>

#include "elastic/ids.h"
#include "elastic/job/process.pb.h"

namespace sluice::elastic {

class MasterServer;
struct JobEndpoint;
struct TrainingJob;

// The configurations of a job's processes. What all of them share, which may be large, is either
// part of each or, where the endpoint says so, offered by the master, from which they fetch it.
class ProcessConfigs {
 public:
  ProcessConfigs(const TrainingJob& job, const JobEndpoint& endpoint)
      : job_(job), endpoint_(endpoint) {}

  void SetPartitions(uint32_t partitions) { server_.set_partitions(partitions); }
  // Once, before any process is started: `master` offers what they will fetch.
  void Fill(MasterServer& master);
  // Servers that start from now on do not begin with the weights to continue from.
  void ForgetBase() { server_.clear_base_bytes(); }

  // Serialized ProcessConfigs. Not thread-safe; workers' and servers' are independent of each
  // other.
  std::string ForWorker(const std::string& name, Incarnation incarnation);
  std::string ForServer(const std::string& name, ServerId server);

 private:
  const TrainingJob& job_;
  const JobEndpoint& endpoint_;
  ProcessConfig server_, worker_;
};

}  // namespace sluice::elastic
