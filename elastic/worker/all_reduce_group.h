#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/collective/all_reduce.h"
#include "elastic/collective/mesh.h"
#include "elastic/ids.h"
#include "elastic/queue/rendezvous.h"
#include "elastic/rpc/job_endpoint.h"

namespace sluice::elastic {

// The workers that add their gradients together, as one of them sees them: its rank, the
// connections to the others, and what it tells the master when they regroup. The master calls a
// list of members a world. One thread.
class AllReduceGroup {
 public:
  struct Options {
    std::string listen_host;
    JobKey key;                        // the job's
    size_t dense_size = 0;             // numbers in the dense tensors
    std::vector<uint32_t> dimensions;  // of the tables
  };
  static Result<std::unique_ptr<AllReduceGroup>> Make(Options options);

  // The group's part of what the master is told.
  void Describe(Rendezvous::Arrival* arrival) const;
  // What came of a regroup. When the members are others than before, connects to them and calls
  // `share`, which gives them the same parameters. OK and not connected(): that failed, as a
  // collective does.
  Status Enter(const Rendezvous::World& formed, Rank rank, const std::stop_token& stop,
               const std::function<Status()>& share);
  // After a failed collective: Unavailable is no reason to end, but the connections are closed at
  // once, so that the others notice too. Other errors are answered.
  Status Leave(const Status& failed);

  // Sends what `save` answers from the member `source` to those that lack it (by rank). Answers
  // what came, or nothing. Unavailable: see Mesh::Exchange.
  using Pieces = std::deque<std::string>;
  Result<Pieces> Broadcast(Rank source, const std::vector<bool>& lacks,
                           const std::function<Result<Pieces>()>& save);

  bool connected() const { return mesh_ != nullptr; }
  WorldId world() const { return world_; }
  // Of a group that is connected.
  Rank rank() const { return mesh_->rank(); }
  size_t size() const { return mesh_->size(); }
  AllReduce& all_reduce() { return *all_reduce_; }

 private:
  AllReduceGroup(Options options, Listener listener)
      : options_(std::move(options)), listener_(std::move(listener)) {}
  Status Connect(const Rendezvous::World& formed, Rank rank, const std::stop_token& stop);

  const Options options_;
  const Listener listener_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<AllReduce> all_reduce_;
  Generation generation_ = kNoGeneration;  // the last one whose outcome is known
  WorldId world_ = kNoWorld;               // the last one that was tried
  std::vector<Incarnation> members_;       // of it, by rank
  bool failed_ = false;                    // it was left in the middle
  Incarnation silent_ = kNobody;           // because of this member
};

}  // namespace sluice::elastic
