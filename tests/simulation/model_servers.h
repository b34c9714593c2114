#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "elastic/parameters/parameter_shard.h"
#include "tests/simulation/linear_model.h"

namespace sluice::elastic::simulation {

// The parameter servers of a simulated job: real ParameterShards. Each has its own model and
// receives every gradient: only the order and number of gradients matter. A batch's gradient is a
// unit vector and the optimizer plain descent at rate 1, so the weights count how often each was
// applied. With replicas each has a backup, which gets everything that its primary applies, in
// order, before that is acknowledged, and takes its place.
class ModelServers {
 public:
  ModelServers(size_t count, size_t batches, bool synchronous, bool replicas);

  size_t size() const { return servers_.size(); }
  // Errors as for ParameterShard; NotFound: it is stopped. `place`: of the batch in the whole
  // snapshot; none at the end of a lane.
  Status Push(size_t server, const BatchIdentity& batch, std::optional<size_t> place);
  Status Ready(size_t server, const BatchIdentity& batch);
  Result<BatchIndex> AppliedBatches(size_t server, Epoch epoch, ShardId shard) const;
  // Number of changes of its parameters. Errors as for Push.
  Result<int64_t> Version(size_t server) const;
  // Its digest. Errors as for Push, and those of ParameterShard.
  Result<std::string> KeepBest(size_t server, const KeepOrder& order);
  models::NetworkWeights Export(size_t server) const;
  std::vector<float> Weights(size_t server) const;
  // I3: a push of an older attempt was applied after one of a newer attempt; or a backup differs
  // from its primary. Empty: I3 held.
  const std::string& broken() const { return broken_; }

  // Its backup takes its place: now, or after it has applied something without shipping it. Does
  // not answer before Return. False: it has no backup at the moment.
  bool Lose(size_t server, bool unshipped);
  void Return(size_t server);
  // Adds another backup with all of the server's state.
  void Refill(size_t server);

  void StandStill(size_t server);
  void Resume(size_t server);
  std::string Save(size_t server) const;
  // New processes, with others' saved state, or empty.
  void Restart(const std::vector<std::string>& saved);

 private:
  struct Server {
    std::unique_ptr<ParameterShard> shard;
    std::map<std::tuple<Epoch, ShardId, RangeId>, Attempt> attempts;
    std::unique_ptr<ParameterShard> backup;
    bool still = false, away = false;
    bool dies_unshipped = false;
  };
  std::unique_ptr<ParameterShard> MakeShard() const;
  void Serve(const Server& server) const;
  // Sends what the primary has applied to the backup, unless the primary dies first. False: it did.
  bool Ship(Server* at, const std::function<Status(ParameterShard*)>& apply);
  const LinearModel& model_;
  const bool synchronous_;
  const bool replicas_;
  std::vector<Server> servers_;
  std::string broken_;
};

}  // namespace sluice::elastic::simulation
