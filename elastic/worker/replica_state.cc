#include "elastic/worker/replica_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "elastic/parameters/partition.h"
#include "elastic/storage/background.h"

namespace sluice::elastic {
namespace {

// A replica is a shard of one partition, which is in no map.
constexpr MapVersion kReplicaMap = kNoMapVersion;
constexpr uint32_t kReplicaPartition = 0;

// The serialised form of a lane's line of the ledger.
struct LaneLine {
  int64_t task, next_batch, rows, rows_read;
  double loss, weight;
  int64_t done, end_of_shard;
  uint64_t checksum;
};

}  // namespace

void ReplicaState::Describe(WorldArrival* arrival) const {
  arrival->at.closed = closed_;
  arrival->at.beginning = beginning_;
  arrival->position = position;
  arrival->kept = kept_;
  arrival->kept_digest = kept_digest_;
}

Status ReplicaState::BelongTo(int64_t beginning) {
  if (beginning != beginning_ && closed_ > 0) {
    return Status(Code::kAborted, "the training has begun again without this worker's weights");
  }
  beginning_ = beginning;
  return Status();
}

Status ReplicaState::Begin() {
  closed_ = 0;
  if (!replica_.restore_from.empty()) {
    ASSIGN_OR_RETURN(
        const std::unique_ptr<ByteSource> state,
        CheckpointDirectory::OpenPartition(replica_.restore_from, replica_.restore_file));
    RETURN_IF_ERROR(Read(*state));
  }
  return DigestKept();
}

std::string ReplicaState::SavePosition() const {
  const std::array<int64_t, 6> head = {closed_,
                                       kept_,
                                       position.epoch.value(),
                                       position.round.value(),
                                       position.step.value(),
                                       static_cast<int64_t>(position.lanes.size())};
  std::string state(reinterpret_cast<const char*>(head.data()), sizeof(head));
  for (const TaskReport& lane : position.lanes) {
    const LaneLine line{lane.task.value(), lane.next_batch.value(),
                        lane.rows,         lane.rows_read,
                        lane.loss,         lane.weight,
                        lane.done,         lane.end_of_shard,
                        lane.checksum};
    state.append(reinterpret_cast<const char*>(&line), sizeof(line));
  }
  return state;
}

Result<std::deque<std::string>> ReplicaState::Save() const {
  std::deque<std::string> pieces = {SavePosition()};
  RETURN_IF_ERROR(
      replica_.shard.Save(kReplicaPartition, kMaxPartBytes, [&pieces](std::string part) {
        pieces.push_back(std::move(part));
        return Status();
      }));
  return pieces;
}

Status ReplicaState::Load(std::deque<std::string> pieces) {
  PiecesSource state(std::move(pieces));
  const Status loaded = Read(state);
  // A member's damaged data are no reason to end: another member may send them correctly.
  return loaded.ok() ? DigestKept() : Unavailable(loaded.message());
}

Status ReplicaState::Read(ByteSource& state) {
  std::array<int64_t, 6> head;
  RETURN_IF_ERROR(state.Read(reinterpret_cast<char*>(head.data()), sizeof(head)));
  if (head[5] < 0 || head[5] > kMaxLanes) {
    return Internal(fmt::format("a replica's state with {} lanes", head[5]));
  }
  RoundPosition sent{
      Epoch(static_cast<uint32_t>(head[2])), RoundIndex(head[3]), BatchIndex(head[4]), {}};
  for (int64_t lane = 0; lane < head[5]; ++lane) {
    LaneLine line;
    RETURN_IF_ERROR(state.Read(reinterpret_cast<char*>(&line), sizeof(line)));
    TaskReport report;
    report.task = TaskId(line.task);
    report.next_batch = BatchIndex(line.next_batch);
    report.rows = line.rows;
    report.rows_read = line.rows_read;
    report.loss = line.loss;
    report.weight = line.weight;
    report.done = line.done != 0;
    report.end_of_shard = line.end_of_shard != 0;
    report.checksum = line.checksum;
    sent.lanes.push_back(report);
  }
  RETURN_IF_ERROR(replica_.shard.Load(kReplicaPartition, state));
  position = std::move(sent);
  closed_ = head[0];
  kept_ = head[1];
  return Status();
}

// Of the state that was received.
Status ReplicaState::DigestKept() {
  kept_digest_.clear();
  if (kept_ >= 0) {
    ASSIGN_OR_RETURN(const models::NetworkWeights kept, Export());
    kept_digest_ = DigestOf(kept);
  }
  return Status();
}

Status ReplicaState::Apply(const StepSum& sum, const Task& first) {
  if (std::none_of(sum.lanes.begin(), sum.lanes.end(),
                   [](const LaneNote& note) { return note.gradient != 0; })) {
    return Status();
  }
  PushRequest push;
  push.partitions = std::span(&kReplicaPartition, 1);
  push.versions = std::span(&closed_, 1);
  push.batch = {first.epoch, first.shard, position.step};
  push.batch.rate_cuts = first.rate_cuts;
  size_t at = 0;
  for (const models::DenseTensor& tensor : network_.dense()) {
    push.dense.push_back(std::span(sum.gradient.dense).subspan(at, tensor.size()));
    at += tensor.size();
  }
  for (const RowGradients& rows : sum.gradient.tables) {
    push.tables.push_back({rows.ids, rows.values});
  }
  RETURN_IF_ERROR(replica_.shard.ApplyStep(push));
  ++closed_;
  return Status();
}

Status ReplicaState::Keep(int64_t step) {
  if (kept_ == step) {
    return Status();
  }
  if (closed_ != step) {
    return Internal(fmt::format("the weights of step {} are gone: this is step {}", step, closed_));
  }
  ASSIGN_OR_RETURN(const ParameterShard::Kept kept,
                   replica_.shard.KeepBest(kReplicaMap, KeepOrder{step, {}}));
  kept_ = step;
  kept_digest_ = DigestOf(*kept.at(kReplicaPartition));
  return Status();
}

Result<models::NetworkWeights> ReplicaState::Export() const {
  return replica_.shard.ExportAll(network_);
}

Status ReplicaState::BeginWriting(const std::string& draft) {
  if (written_.valid()) {
    written_.wait();  // of a draft that the master has given up
  }
  ASSIGN_OR_RETURN(PartitionImage image, replica_.shard.Capture(kReplicaPartition));
  draft_ = draft;
  written_ = std::async(std::launch::async,
                        [draft, head = SavePosition(), image = std::move(image)]() mutable {
                          LowerPriority();
                          return Guarded("writing a checkpoint", [&] {
                            return CheckpointDirectory::WritePartition(
                                draft, kReplicaPartition, [&](const PartSink& sink) -> Status {
                                  RETURN_IF_ERROR(sink(head));
                                  return std::move(image).Encode(sink);
                                });
                          });
                        });
  return Status();
}

Status ReplicaState::ReportWritten() {
  if (!written_.valid() ||
      written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return Status();
  }
  return replica_.link.Written(draft_, written_.get());
}

}  // namespace sluice::elastic
