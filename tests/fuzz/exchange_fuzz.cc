#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "elastic/rpc/exchange_internal.h"
#include "models/model.pb.h"
#include "tests/elastic/job/small_job.h"
#include "tests/fuzz/target.h"

// Exchanges sent to a parameter server, one after another: each preceded by its length in two
// bytes. The first byte: synchronous (1), partitions (2), shipped by another server rather than
// pushed (4).
namespace sluice::elastic {
namespace {

struct ExchangeJob {
  plan::TrainPlan plan = SmallPlan(1, 8);
  std::unique_ptr<models::Network> network = models::Network::Make(plan.model()).value();
};

void Exchange(const ExchangeRequest& request, std::span<const uint32_t> partitions, bool shipped,
              ParameterShard* shard) {
  if (request.has_push()) {
    UnpackedPush push;
    if (Unpack(request.push(), shard->rules().layout, partitions, &push).ok()) {
      static_cast<void>(shipped ? shard->PushReplica(push.request, {}) : shard->Push(push.request));
    }
  }
  if (request.has_pull()) {
    ExchangeReply reply;
    const Status status = AnswerPull(request.pull(), kNoMapVersion, partitions, 0, *shard, &reply);
    SLUICE_CHECK(!status.ok() || reply.not_open() ||
                     reply.versions().size() == partitions.size() * sizeof(int64_t),
                 "an answer has a version for each partition");
  }
}

void RunExchange(std::string_view input) {
  static const ExchangeJob job;
  const int how = input.empty() ? 0 : input.front();
  input.remove_prefix(input.empty() ? 0 : 1);
  std::vector<uint32_t> partitions((how & 2) != 0 ? 3 : 1);
  std::iota(partitions.begin(), partitions.end(), 0);
  const auto count = static_cast<uint32_t>(partitions.size());
  const std::unique_ptr<ParameterShard> shard =
      ParameterShard::Make(job.plan.model(), *job.network, {count, (how & 1) != 0, false}, nullptr)
          .value();
  while (input.size() >= sizeof(uint16_t)) {
    uint16_t size = 0;
    std::memcpy(&size, input.data(), sizeof(size));
    input.remove_prefix(sizeof(size));
    const std::string_view bytes = input.substr(0, size);
    input.remove_prefix(bytes.size());
    ExchangeRequest request;
    if (request.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      Exchange(request, partitions, (how & 4) != 0, shard.get());
      static_cast<void>(shard->AppliedBatches(kNoMapVersion, Epoch(request.push().batch().epoch()),
                                              ShardId(request.push().batch().shard())));
    }
  }
  for (uint32_t partition : partitions) {
    const std::string saved = shard->Save(partition).value();
    SLUICE_CHECK(shard->Load(partition, saved).ok(), "what has come about can be loaded");
  }
}

}  // namespace
}  // namespace sluice::elastic

FUZZ_TARGET(exchange) {
  sluice::elastic::RunExchange({reinterpret_cast<const char*>(data), size});
  return 0;
}
