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

// The parameter servers of a simulated job: real ParameterShards. Each has a model of its own and
// gets every gradient: all that counts is who gets what when. A batch's gradient is a unit vector
// and the optimizer plain descent at rate 1, so the weights count how often each was applied. With
// replicas each has a backup, which gets everything that its primary applies, in order, before that
// is acknowledged, and takes its place.
class ModelServers {
 public:
  ModelServers(size_t count, size_t batches, bool synchronous, bool replicas);

  size_t size() const { return servers_.size(); }
  // Errors as of ParameterShard; NotFound: it stands still. `place`: of the batch among all of the
  // snapshot; none at the end of a lane.
  Status Push(size_t server, const BatchIdentity& batch, std::optional<size_t> place);
  Status Ready(size_t server, const BatchIdentity& batch);
  Result<BatchIndex> AppliedBatches(size_t server, Epoch epoch, ShardId shard) const;
  // How often its parameters have changed. Errors as of Push.
  Result<int64_t> Version(size_t server) const;
  // Its digest. Errors as of Push, and those of ParameterShard.
  Result<std::string> KeepBest(size_t server, const KeepOrder& order);
  models::NetworkWeights Export(size_t server) const;
  std::vector<float> Weights(size_t server) const;
  // I3: a push of an older attempt was applied after one of a newer; or a backup differs from its
  // primary. Empty: it held.
  const std::string& broken() const { return broken_; }

  // Its backup takes its place: now, or when it has applied something and not shipped it. Answers
  // nothing before Return. False: it has none at the moment.
  bool Lose(size_t server, bool unshipped);
  void Return(size_t server);
  // Another backup, with all that the server has.
  void Refill(size_t server);

  void StandStill(size_t server);
  void GoOn(size_t server);
  std::string Save(size_t server) const;
  // New processes, with what others saved, or nothing.
  void Restart(const std::vector<std::string>& saved);

 private:
  struct Server {
    std::unique_ptr<ParameterShard> shard;
    std::map<std::tuple<Epoch, ShardId, RangeId>, uint32_t> attempts;
    std::unique_ptr<ParameterShard> backup;
    bool still = false, away = false;
    bool dies_unshipped = false;
  };
  std::unique_ptr<ParameterShard> MakeShard() const;
  void Serve(const Server& server) const;
  // What the primary has applied goes to the backup, unless the primary dies before. False: it did.
  bool Ship(Server* at, const std::function<Status(ParameterShard*)>& apply);
  const LinearModel& model_;
  const bool synchronous_;
  const bool replicas_;
  std::vector<Server> servers_;
  std::string broken_;
};

}  // namespace sluice::elastic::simulation
