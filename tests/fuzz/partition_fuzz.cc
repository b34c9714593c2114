#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "elastic/parameters/parameter_shard.h"
#include "elastic/storage/crc32c.h"
#include "models/model.pb.h"
#include "tests/elastic/job/small_job.h"
#include "tests/fuzz/target.h"

// The bytes of a partition, from a checkpoint or from another server. The first byte says whether
// the job is synchronous (1), and whether the rest gets a correct checksum (2: so that the input
// gets past it) or is a sequence of parts.
namespace sluice::elastic {
namespace {

struct PartitionJob {
  plan::TrainPlan plan = SmallPlan(1, 8);
  std::unique_ptr<models::Network> network = models::Network::Make(plan.model()).value();
  std::unique_ptr<ParameterShard> Shard(bool synchronous) const {
    return ParameterShard::Make(plan.model(), *network, {1, synchronous, false}, nullptr).value();
  }
};

// Uses a loaded partition as workers do.
void Use(const PartitionJob& job, bool synchronous, ParameterShard* shard) {
  const uint32_t partition = 0;
  const int64_t version = 0;
  std::vector<std::vector<float>> dense;
  for (const models::DenseTensor& tensor : job.network->dense()) {
    dense.emplace_back(tensor.size(), 0.1F);
  }
  const std::vector<int64_t> ids = {0, 3, 50};
  std::vector<float> rows(ids.size() * job.network->tables()[0].dimension, 0.1F);
  PushRequest push;
  push.partitions = std::span(&partition, 1);
  push.versions = std::span(&version, 1);
  push.batch.epoch = Epoch(1);
  push.batch.lanes = synchronous ? 2 : 0;
  push.weight = 1;
  for (const std::vector<float>& tensor : dense) {
    push.dense.emplace_back(tensor);
  }
  push.tables.resize(job.network->tables().size());
  push.tables[0] = {ids, rows};
  for (push.batch.lane = 0; push.batch.lane < 2; ++push.batch.lane) {
    static_cast<void>(shard->Push(push));
  }
  int64_t read = 0;
  PullRequest pull;
  pull.partitions = push.partitions;
  pull.batch = push.batch;
  pull.tables.resize(push.tables.size());
  pull.tables[0] = ids;
  PullTarget target;
  target.versions = std::span(&read, 1);
  for (std::vector<float>& tensor : dense) {
    target.dense.push_back(tensor.data());
  }
  target.tables.assign(pull.tables.size(), rows.data());
  static_cast<void>(shard->Pull(pull, target, 0));
  static_cast<void>(shard->AppliedBatches(kNoMapVersion, Epoch(1), ShardId(0)));
  static_cast<void>(shard->ExportAll(*job.network));
}

void ReadPartition(std::string_view input) {
  static const PartitionJob job;
  const int how = input.empty() ? 0 : input.front();
  const bool synchronous = (how & 1) != 0;
  std::string bytes(input.substr(input.empty() ? 0 : 1));
  if ((how & 2) != 0) {
    const uint32_t crc = Crc32c(bytes);
    bytes.append(reinterpret_cast<const char*>(&crc), sizeof(crc));
  }
  const std::unique_ptr<ParameterShard> shard = job.Shard(synchronous);
  const std::string before = shard->Save(0).value();
  if (!shard->Load(0, bytes).ok()) {
    SLUICE_CHECK(shard->Save(0).value() == before, "what does not load changes nothing");
    return;
  }
  const std::string saved = shard->Save(0).value();
  const std::unique_ptr<ParameterShard> copy = job.Shard(synchronous);
  SLUICE_CHECK(copy->Load(0, saved).ok(), "what was loaded can be saved and loaded");
  SLUICE_CHECK(copy->Save(0).value() == saved, "and is the same");
  Use(job, synchronous, shard.get());
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(partition) {
  sluice::elastic::ReadPartition({reinterpret_cast<const char*>(data), size});
  return 0;
}
