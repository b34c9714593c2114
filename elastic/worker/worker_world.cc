#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "base/log.h"
#include "elastic/parameters/partition.h"
#include "elastic/worker/worker_lease_internal.h"
#include "elastic/worker/worker_world_internal.h"

// The all-reduce worker: meets the others, enters a world with them, trains a round with them.
namespace sluice::elastic {
namespace {

// A replica is a shard of one partition, which has no place in any map.
constexpr uint64_t kReplicaMap = 0;
// Of a state that comes from another member.
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;

}  // namespace

Status Worker::JoinWorld(const Replica& replica) {
  ASSIGN_OR_RETURN(Listener listener,
                   Listener::Open(Listener::KindFor(replica.listen_host), replica.listen_host));
  world_ = std::make_unique<World>(replica, std::move(listener));
  for (const models::DenseTensor& tensor : network_->dense()) {
    world_->tensors.push_back(tensor.size());
    world_->dense_size += tensor.size();
  }
  for (const models::EmbeddingTable& table : network_->tables()) {
    world_->dimensions.push_back(table.dimension);
  }
  return Status();
}

Status Worker::WorkInWorld() {
  World& world = *world_;
  ASSIGN_OR_RETURN(const WorldAnswer answer, world.replica.link.Meet(world.Arrival()));
  if (answer.work == WorldAnswer::Work::kFinished) {
    finished_ = true;
    return Status();
  }
  if (answer.world.id == 0) {
    return Status();
  }
  world.generation = answer.world.generation;
  RETURN_IF_ERROR(EnterWorld(answer));
  if (world.mesh == nullptr) {
    return Status();
  }
  switch (answer.work) {
    case WorldAnswer::Work::kTrain:
      return TrainRound(answer);
    case WorldAnswer::Work::kEvaluate:
      return EvaluateAll();
    case WorldAnswer::Work::kExport:
      return DeliverWeights();
    default:
      return Status();
  }
}

Status Worker::EnterWorld(const WorldAnswer& answer) {
  World& world = *world_;
  if (answer.world.id != world.entered) {
    world.mesh.reset();
    world.entered = answer.world.id;
    if (answer.world.beginning != world.beginning && world.closed > 0) {
      return Status(Code::kAborted, "the training has begun again without this worker's weights");
    }
    world.beginning = answer.world.beginning;
    Mesh::Options options;
    options.world = answer.world.id;
    options.rank = answer.rank;
    options.token = world.replica.token;
    world.members.clear();
    for (const Rendezvous::Member& member : answer.world.members) {
      world.members.push_back(member.incarnation);
      options.addresses.push_back(member.address);
    }
    Result<std::unique_ptr<Mesh>> mesh = Mesh::Open(options, world.listener, stop_);
    if (!mesh.ok()) {
      return world.Leave(mesh.status());
    }
    world.mesh = *std::move(mesh);
    world.all_reduce = std::make_unique<AllReduce>(*world.mesh, world.dense_size, world.dimensions);
    const Status shared = ShareState(answer.world);
    if (!shared.ok()) {
      return world.Leave(shared);
    }
  }
  world.failed = false;
  world.silent = 0;
  world.meet = false;
  if (answer.best >= 0 && world.best != answer.best) {
    if (world.closed != answer.best) {
      return Internal(fmt::format("the weights of step {} are gone: this is step {}", answer.best,
                                  world.closed));
    }
    const KeepOrder order{answer.best, {}};
    ASSIGN_OR_RETURN(const ParameterShard::Kept kept,
                     world.replica.shard.KeepBest(kReplicaMap, order));
    world.best = answer.best;
    world.best_digest = DigestOf(*kept.at(0));
  }
  return Status();
}

// Who has closed the newest step sends the parameters to those who have not.
Status Worker::ShareState(const Rendezvous::World& formed) {
  World& world = *world_;
  if (formed.closed == Rendezvous::kNoState) {
    world.closed = 0;  // every worker begins with the same parameters
    RETURN_IF_ERROR(world.Restore());
    return DigestKept();
  }
  const size_t rank = world.mesh->rank();
  std::vector<Mesh::Traffic> traffic(formed.members.size());
  for (Mesh::Traffic& with : traffic) {
    with.next = [] { return std::span<std::byte>(); };
  }
  std::deque<std::string> state;
  uint64_t size = 0;
  const bool receives = formed.members[rank].closed != formed.closed;
  if (receives) {
    // In pieces, as they come: nothing is allocated by what a peer says that it will send.
    traffic[formed.source].next = [&state, &size,
                                   begun = false]() mutable -> Result<std::span<std::byte>> {
      if (!std::exchange(begun, true)) {
        return std::as_writable_bytes(std::span(&size, 1));
      }
      const size_t piece = std::min<uint64_t>(size, kPieceBytes);
      if (piece == 0) {
        return std::span<std::byte>();
      }
      size -= piece;
      return std::as_writable_bytes(std::span(state.emplace_back(piece, '\0')));
    };
  } else if (rank == formed.source) {
    for (size_t peer = 0; peer < formed.members.size(); ++peer) {
      if (formed.members[peer].closed == formed.closed) {
        continue;
      }
      if (state.empty()) {
        ASSIGN_OR_RETURN(state, world.SaveState());
        for (const std::string& piece : state) {
          size += piece.size();
        }
      }
      traffic[peer].out = {std::as_bytes(std::span(&size, 1))};
      for (const std::string& piece : state) {
        traffic[peer].out.push_back(std::as_bytes(std::span(piece)));
      }
    }
  }
  RETURN_IF_ERROR(world.mesh->Exchange(&traffic));
  if (!receives) {
    return Status();
  }
  PiecesSource bytes(std::move(state));
  Status loaded = world.LoadState(bytes);
  // What a member sent is no reason to end: another one may send it right.
  return loaded.ok() ? DigestKept() : Unavailable(loaded.message());
}

// Of what came with the state.
Status Worker::DigestKept() {
  World& world = *world_;
  world.best_digest.clear();
  if (world.best >= 0) {
    ASSIGN_OR_RETURN(const models::NetworkWeights kept, world.replica.shard.ExportAll(*network_));
    world.best_digest = DigestOf(kept);
  }
  return Status();
}

Status Worker::DeliverWeights() {
  ASSIGN_OR_RETURN(const models::NetworkWeights weights,
                   world_->replica.shard.ExportAll(*network_));
  return world_->replica.link.Deliver(weights);
}

Status Worker::EvaluateAll() {
  for (;;) {
    // Nothing left: the others may have the last tasks, so wait for them where the members regroup.
    ASSIGN_OR_RETURN(const MasterLink::Answer answer, master_.Take(false));
    finished_ = answer.kind == MasterLink::Answer::Kind::kFinished;
    if (answer.kind != MasterLink::Answer::Kind::kTask) {
      return Status();
    }
    RETURN_IF_ERROR(Judge(answer.task));
  }
}

// This worker's share of the round's lanes, read as far as they are not here already.
Status Worker::LoadLanes(const std::vector<Task>& lanes, uint32_t begin, uint32_t end) {
  std::vector<std::unique_ptr<Lease>> held = std::exchange(lanes_, {});
  for (uint32_t lane = begin; lane < end; ++lane) {
    const auto found = std::find_if(held.begin(), held.end(), [&](const auto& lease) {
      return lease != nullptr && lease->task.id == lanes[lane].id;
    });
    if (found != held.end()) {
      lanes_.push_back(std::move(*found));
    } else {
      auto lease = std::make_unique<Lease>();
      lease->task = lanes[lane];
      RETURN_IF_ERROR(Load(lease.get()));
      lanes_.push_back(std::move(lease));
    }
    lanes_.back()->next = world_->position.step;
  }
  return Status();
}

Status Worker::TrainRound(const WorldAnswer& round) {
  World& world = *world_;
  const std::vector<Task>& lanes = round.lanes;
  if (lanes.empty()) {
    return Status();
  }
  RoundPosition& position = world.position;
  if (position.epoch != lanes[0].epoch || position.round != lanes[0].round ||
      position.lanes.size() != lanes.size()) {
    position = {lanes[0].epoch, lanes[0].round, 0, std::vector<TaskReport>(lanes.size())};
  }
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    position.lanes[lane].task = lanes[lane].id;
  }
  const auto count = static_cast<uint32_t>(lanes.size());
  const auto [begin, end] = LanesOf(count, world.mesh->rank(), world.mesh->size());
  RETURN_IF_ERROR(world.TellWritten());
  RETURN_IF_ERROR(LoadLanes(lanes, begin, end));
  do {
    RETURN_IF_ERROR(Stopped());
    RETURN_IF_ERROR(StepLanes(count));
    const Status added = world.all_reduce->Run(world.closed, count, &world.sums.nodes(),
                                               world.notes, world.meet, &world.sum);
    world.KeepMemory();
    if (!added.ok()) {
      return world.Leave(added);
    }
    if (world.mesh->rank() == 0 && TimeToReport()) {
      ASSIGN_OR_RETURN(const StepAnswer answer,
                       world.replica.link.ReportStep(world.entered, world.closed, position));
      world.meet = answer.meet;
      if (!answer.draft.empty()) {
        RETURN_IF_ERROR(world.BeginWriting(answer.draft));
      }
      RETURN_IF_ERROR(world.TellWritten());
    }
    RETURN_IF_ERROR(CloseStep(lanes));
  } while (!position.Over() && !world.sum.reconvene);
  return Status();
}

// The gradients of this worker's lanes in the open step, added as far as the tree allows.
Status Worker::StepLanes(uint32_t lanes) {
  World& world = *world_;
  world.sums.Start(lanes);
  world.notes.clear();
  const auto merge = [&world](FlatGradient* left, FlatGradient& right) {
    Merge(left, right, world.dimensions);
    world.spare.push_back(std::move(right.dense));
  };
  for (const std::unique_ptr<Lease>& lease : lanes_) {
    LaneNote note;
    note.lane = lease->task.lane;
    note.rows_read = std::exchange(lease->report.rows_read, 0);
    note.checksum = lease->report.checksum;
    note.ends = lease->next + 1 >= lease->end() ? 1 : 0;
    note.end_of_shard = note.ends != 0 && lease->batches <= lease->task.last_batch ? 1 : 0;
    std::optional<FlatGradient> gradient;
    if (!lease->done()) {
      GatherBatch(*lease, lease->next, &batch_);
      network_->CollectIds(batch_, &view_);
      RETURN_IF_ERROR(parameters_.Pull(Identity(*lease, lease->next), Purpose::kLatest, &view_));
      const models::LossSum loss =
          network_->Step(batch_, view_, StepSeed(*lease, lease->next), &gradient_);
      note.gradient = 1;
      note.weight = loss.weight;
      note.loss = loss.loss;
      note.rows = static_cast<int64_t>(batch_.rows);
      gradient = world.Scaled(gradient_, view_, loss.weight);
    }
    world.notes.push_back(note);
    world.sums.Add(note.lane, std::move(gradient), merge);
  }
  return Status();
}

// The sum is complete: it changes the parameters, and the round's page of the ledger.
Status Worker::CloseStep(const std::vector<Task>& lanes) {
  World& world = *world_;
  RoundPosition& position = world.position;
  const bool gradient = std::any_of(world.sum.lanes.begin(), world.sum.lanes.end(),
                                    [](const LaneNote& note) { return note.gradient != 0; });
  if (gradient) {
    const uint32_t partition = 0;
    const int64_t version = world.closed;
    PushRequest sum;
    sum.partitions = std::span(&partition, 1);
    sum.versions = std::span(&version, 1);
    sum.batch = {lanes[0].epoch, lanes[0].shard, position.step};
    size_t at = 0;
    for (size_t size : world.tensors) {
      sum.dense.push_back(std::span(world.sum.gradient.dense).subspan(at, size));
      at += size;
    }
    for (const RowGradients& rows : world.sum.gradient.tables) {
      sum.tables.push_back({rows.ids, rows.values});
    }
    const Status applied = world.replica.shard.ApplyStep(sum);
    if (!applied.ok()) {
      return FailTask(lanes[0], applied);
    }
    ++world.closed;
  }
  for (const LaneNote& note : world.sum.lanes) {
    TaskReport& report = position.lanes[note.lane];
    report.rows += note.rows;
    report.rows_read += note.rows_read;
    report.checksum = note.checksum;
    report.loss += CountedSum(note.loss);
    report.weight += note.gradient != 0 ? CountedSum(note.weight) : 0;
    report.next_batch = note.gradient != 0 ? position.step + 1 : report.next_batch;
    report.done = note.ends != 0;
    report.end_of_shard = note.end_of_shard != 0;
  }
  ++position.step;
  for (const std::unique_ptr<Lease>& lease : lanes_) {
    lease->next = position.step;
  }
  return Status();
}

WorldArrival Worker::World::Arrival() const {
  WorldArrival arrival;
  arrival.at.address = listener.address();
  arrival.at.closed = closed;
  arrival.at.beginning = beginning;
  arrival.at.generation = generation;
  arrival.at.world = entered;
  arrival.at.failed = failed;
  arrival.at.silent = silent;
  arrival.position = position;
  arrival.kept = best;
  arrival.kept_digest = best_digest;
  return arrival;
}

FlatGradient Worker::World::Scaled(const models::Gradient& gradient,
                                   const models::ParameterView& view, double weight) {
  const auto factor = static_cast<float>(weight);
  FlatGradient flat;
  if (!spare.empty()) {
    flat.dense = std::move(spare.back());
    spare.pop_back();
  }
  flat.dense.resize(dense_size);
  float* to = flat.dense.data();
  for (const std::vector<float>& tensor : gradient.dense) {
    for (float value : tensor) {
      *to++ = value * factor;
    }
  }
  for (size_t t = 0; t < dimensions.size(); ++t) {
    flat.tables.push_back({view.tables[t].ids, gradient.tables[t]});
    for (float& value : flat.tables.back().values) {
      value *= factor;
    }
  }
  return flat;
}

void Worker::World::KeepMemory() {
  for (AllReduce::Sums::Node& node : sums.nodes()) {
    if (node.sum.has_value()) {
      spare.push_back(std::move(node.sum->dense));
    }
  }
}

Status Worker::World::Leave(const Status& status) {
  if (status.code() != Code::kUnavailable) {
    return status;
  }
  log::Debug("leaving world {}: {}", entered, status.message());
  if (mesh != nullptr && mesh->silent() >= 0) {
    silent = members[static_cast<size_t>(mesh->silent())];
  }
  all_reduce.reset();
  mesh.reset();
  failed = true;
  return Status();
}

}  // namespace sluice::elastic
