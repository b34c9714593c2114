#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/ids.h"
#include "elastic/parameters/partition_map.h"
#include "elastic/queue/keep_order.h"
#include "elastic/storage/checkpoint.h"
#include "elastic/transport/job_key.h"
#include "models/model.h"

namespace sluice::elastic {

// The master's calls to the parameter servers. Each returns when it is done; one that does not get
// through in time is Unavailable. A server keeps its connection from call to call. Thread-safe.
class ParameterControl {
 public:
  // `term`: of the calling master; servers that know a later one refuse (Aborted). While a
  // placement call waits, `should_give_up` is called from time to time, on the caller's thread, and
  // decides whether to give up: a hung server is given up long before a call's deadline.
  using ShouldGiveUp = std::function<bool()>;
  ParameterControl(JobKey key, Term term, std::stop_token stop, ShouldGiveUp should_give_up = {});
  ~ParameterControl();

  // Placement.

  enum class Phase { kFreeze, kAdopt, kCreate, kRelease };  // elastic.proto, InstallRequest
  // `restore`: kCreate from this checkpoint.
  Status Install(const std::string& address, const PartitionMap& map, Phase phase,
                 const CheckpointDirectory::Found* restore = nullptr) const;
  // Between kFreeze and kAdopt: the server keeps the state of these partitions; then it writes it,
  // while it serves, and discards it.
  Status Snapshot(const std::string& address, const std::vector<uint32_t>& partitions) const;
  Result<std::vector<CheckpointManifest::File>> Write(const std::string& address,
                                                      const std::string& directory) const;
  // Gives `to` a copy of a partition, from its primary at `address`.
  Status Fill(const std::string& address, uint32_t partition, ServerId to,
              const std::string& to_address) const;

  // Every primary keeps the weights that were judged. Returns their digest (partition.h).
  Result<std::string> Keep(const PartitionMap& map, const KeepOrder& order) const;
  // The weights of all partitions. Internal: they do not match `digest`; empty: any will do.
  Result<models::NetworkWeights> Collect(const PartitionMap& map, const models::Network& network,
                                         const std::string& digest) const;

 private:
  struct Calls;

  const JobKey key_;
  const Term term_;
  const std::stop_token stop_;
  const ShouldGiveUp should_give_up_;
  const std::unique_ptr<Calls> calls_;
};

}  // namespace sluice::elastic
