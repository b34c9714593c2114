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

// The workers that add their gradients together, from the point of view of one of them: its rank,
// the connections to the others, and its messages to the master for a regroup. The master calls a
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

  // Fills in the group's part of the message to the master.
  void Describe(Rendezvous::Arrival* arrival) const;
  // Adopts the outcome of a regroup. If the members have changed, connects to them and calls
  // `share`, which gives all of them the same parameters. OK and not connected(): that failed, like
  // a collective.
  Status Enter(const Rendezvous::World& formed, Rank rank, const std::stop_token& stop,
               const std::function<Status()>& share);
  // After a failed collective: Unavailable does not end the worker, but the connections are closed
  // at once, so that the others notice, too. Other errors are returned.
  Status Leave(const Status& failed);

  // Sends what `save` returns from the member `source` to those that lack it (by rank). Returns the
  // received data, or nothing. Unavailable: see Mesh::Exchange.
  using Pieces = std::deque<std::string>;
  Result<Pieces> Broadcast(Rank source, const std::vector<bool>& lacks,
                           const std::function<Result<Pieces>()>& save);

  bool connected() const { return mesh_ != nullptr; }
  WorldId world() const { return world_; }
  // For a connected group.
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
  WorldId world_ = kNoWorld;               // the last one that was attempted
  std::vector<Incarnation> members_;       // of it, by rank
  bool failed_ = false;                    // it was left in the middle of a step
  Incarnation silent_ = kNoIncarnation;    // because of this member
};

}  // namespace sluice::elastic
