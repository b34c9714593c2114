#include "elastic/worker/all_reduce_group.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"

namespace sluice::elastic {
namespace {

// Of the data that a member broadcasts.
constexpr uint64_t kReplicaPieceBytes = uint64_t{4} << 20;

}  // namespace

Result<std::unique_ptr<AllReduceGroup>> AllReduceGroup::Make(Options options) {
  ASSIGN_OR_RETURN(Listener listener,
                   Listener::Open(Listener::KindFor(options.listen_host), options.listen_host));
  return std::unique_ptr<AllReduceGroup>(
      new AllReduceGroup(std::move(options), std::move(listener)));
}

void AllReduceGroup::Describe(Rendezvous::Arrival* arrival) const {
  arrival->address = listener_.address();
  arrival->generation = generation_;
  arrival->world = world_;
  arrival->failed = failed_;
  arrival->silent = silent_;
}

Status AllReduceGroup::Enter(const Rendezvous::World& formed, Rank rank,
                             const std::stop_token& stop, const std::function<Status()>& share) {
  generation_ = formed.generation;
  if (formed.id != world_) {
    Status entered = Connect(formed, rank, stop);
    if (entered.ok()) {
      entered = share();
    }
    if (!entered.ok()) {
      return Leave(entered);
    }
  }
  failed_ = false;
  silent_ = kNoIncarnation;
  return Status();
}

Status AllReduceGroup::Connect(const Rendezvous::World& formed, Rank rank,
                               const std::stop_token& stop) {
  all_reduce_.reset();
  mesh_.reset();
  world_ = formed.id;
  Mesh::Options mesh;
  mesh.world = formed.id;
  mesh.rank = rank;
  mesh.key = options_.key;
  members_.clear();
  for (const Rendezvous::Member& member : formed.members) {
    members_.push_back(member.incarnation);
    mesh.addresses.push_back(member.address);
  }
  ASSIGN_OR_RETURN(mesh_, Mesh::Open(mesh, listener_, stop));
  all_reduce_ = std::make_unique<AllReduce>(*mesh_, options_.dense_size, options_.dimensions);
  return Status();
}

Status AllReduceGroup::Leave(const Status& failed) {
  if (failed.code() != Code::kUnavailable) {
    return failed;
  }
  log::Debug("leaving world {}: {}", world_, failed.message());
  if (mesh_ != nullptr && mesh_->silent().has_value()) {
    silent_ = members_[mesh_->silent()->index()];
  }
  all_reduce_.reset();
  mesh_.reset();
  failed_ = true;
  return Status();
}

Result<AllReduceGroup::Pieces> AllReduceGroup::Broadcast(
    Rank source, const std::vector<bool>& lacks, const std::function<Result<Pieces>()>& save) {
  std::vector<Mesh::Traffic> traffic(mesh_->size());
  for (Mesh::Traffic& with : traffic) {
    with.next = [] { return std::span<std::byte>(); };
  }
  Pieces sent, received;
  uint64_t size = 0;
  if (lacks[mesh_->rank().index()]) {
    // In pieces, as they arrive: a peer's announcement of its amount allocates nothing.
    traffic[source.index()].next = [&received, &size,
                                    begun = false]() mutable -> Result<std::span<std::byte>> {
      if (!std::exchange(begun, true)) {
        return std::as_writable_bytes(std::span(&size, 1));
      }
      const size_t piece = std::min<uint64_t>(size, kReplicaPieceBytes);
      if (piece == 0) {
        return std::span<std::byte>();
      }
      size -= piece;
      return std::as_writable_bytes(std::span(received.emplace_back(piece, '\0')));
    };
  } else if (mesh_->rank() == source &&
             std::find(lacks.begin(), lacks.end(), true) != lacks.end()) {
    ASSIGN_OR_RETURN(sent, save());
    for (const std::string& piece : sent) {
      size += piece.size();
    }
    for (size_t peer = 0; peer < lacks.size(); ++peer) {
      if (!lacks[peer]) {
        continue;
      }
      traffic[peer].out = {std::as_bytes(std::span(&size, 1))};
      for (const std::string& piece : sent) {
        traffic[peer].out.push_back(std::as_bytes(std::span(piece)));
      }
    }
  }
  RETURN_IF_ERROR(mesh_->Exchange(&traffic));
  return received;
}

}  // namespace sluice::elastic
