#include <fmt/core.h>

#include <array>
#include <chrono>

#include "base/guarded.h"
#include "elastic/storage/background.h"
#include "elastic/worker/worker_world_internal.h"

// What a worker that joins is sent: where the round is, its page of the ledger, the parameters.
namespace sluice::elastic {
namespace {

// A lane's line of the ledger as it travels.
struct LaneLine {
  int64_t task, next_batch, rows, rows_read;
  double loss, weight;
  int64_t done, end_of_shard;
  uint64_t checksum;
};

}  // namespace

std::string Worker::World::SavePosition() const {
  const std::array<int64_t, 6> head = {closed,         best,
                                       position.epoch, position.round,
                                       position.step,  static_cast<int64_t>(position.lanes.size())};
  std::string state(reinterpret_cast<const char*>(head.data()), sizeof(head));
  for (const TaskReport& lane : position.lanes) {
    const LaneLine line{lane.task,   lane.next_batch, lane.rows,         lane.rows_read, lane.loss,
                        lane.weight, lane.done,       lane.end_of_shard, lane.checksum};
    state.append(reinterpret_cast<const char*>(&line), sizeof(line));
  }
  return state;
}

Result<std::deque<std::string>> Worker::World::SaveState() const {
  std::deque<std::string> pieces = {SavePosition()};
  RETURN_IF_ERROR(replica.shard.Save(0, kMostPartBytes, [&pieces](std::string part) {
    pieces.push_back(std::move(part));
    return Status();
  }));
  return pieces;
}

Status Worker::World::LoadState(ByteSource& state) {
  std::array<int64_t, 6> head;
  RETURN_IF_ERROR(state.Read(reinterpret_cast<char*>(head.data()), sizeof(head)));
  if (head[5] < 0 || head[5] > kMostLanes) {
    return Internal(fmt::format("the state of a world with {} lanes", head[5]));
  }
  RoundPosition sent{static_cast<uint32_t>(head[2]), head[3], head[4], {}};
  for (int64_t lane = 0; lane < head[5]; ++lane) {
    LaneLine line;
    RETURN_IF_ERROR(state.Read(reinterpret_cast<char*>(&line), sizeof(line)));
    TaskReport report;
    report.task = line.task;
    report.next_batch = line.next_batch;
    report.rows = line.rows;
    report.rows_read = line.rows_read;
    report.loss = line.loss;
    report.weight = line.weight;
    report.done = line.done != 0;
    report.end_of_shard = line.end_of_shard != 0;
    report.checksum = line.checksum;
    sent.lanes.push_back(report);
  }
  RETURN_IF_ERROR(replica.shard.Load(0, state));
  position = std::move(sent);
  closed = head[0];
  best = head[1];
  return Status();
}

Status Worker::World::Restore() {
  if (replica.restore_from.empty()) {
    return Status();
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> state,
                   CheckpointDirectory::OpenPartition(replica.restore_from, replica.restore_file));
  return LoadState(*state);
}

Status Worker::World::BeginWriting(const std::string& to) {
  if (written.valid()) {
    written.wait();  // of a draft that the master has given up
  }
  ASSIGN_OR_RETURN(PartitionImage image, replica.shard.Capture(0));
  draft = to;
  written = std::async(
      std::launch::async, [to, head = SavePosition(), image = std::move(image)]() mutable {
        LowerPriority();
        return Guarded("writing a checkpoint", [&] {
          return CheckpointDirectory::WritePartition(to, 0, [&](const PartSink& sink) -> Status {
            RETURN_IF_ERROR(sink(head));
            return std::move(image).Encode(sink);
          });
        });
      });
  return Status();
}

Status Worker::World::TellWritten() {
  if (!written.valid() || written.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    return Status();
  }
  return replica.link.Written(draft, written.get());
}

}  // namespace sluice::elastic
