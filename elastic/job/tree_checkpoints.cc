#include "elastic/job/tree_checkpoints.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/guarded.h"
#include "catalog/dataset.pb.h"
#include "elastic/job/job_checkpoints.h"
#include "elastic/job/training_job.h"
#include "elastic/master/master_host.h"
#include "elastic/storage/background.h"
#include "elastic/storage/checkpoint.pb.h"
#include "elastic/worker/row_selection.h"

namespace sluice::elastic {
namespace {

// Of a forest: a thousand rounds of ten classes, eight levels deep, take 100 MB.
constexpr size_t kMaxBytes = size_t{1} << 30;

// Returns what to tell of it.
Result<std::string> WriteTrees(const JobCheckpoints& checkpoints, const TreeCheckpoint& trees) {
  ASSIGN_OR_RETURN(const std::string bytes, trees.Encode());
  CheckpointDirectory directory = checkpoints.directory();
  ASSIGN_OR_RETURN(const CheckpointDirectory::Draft draft, directory.Begin());
  CheckpointManifest manifest = checkpoints.Manifest();
  ASSIGN_OR_RETURN(const CheckpointManifest::File file,
                   CheckpointDirectory::WritePartition(
                       draft.path, 0, [&bytes](const PartSink& sink) { return sink(bytes); }));
  manifest.partitions = 1;
  manifest.synchronous = true;
  manifest.steps = trees.rounds();
  manifest.files = {file};
  RETURN_IF_ERROR(directory.Commit(draft, std::move(manifest)));
  return DescribeCheckpoint(directory, draft, trees.rounds(), file.bytes);
}

// As an event: its kind and what it tells.
std::pair<std::string, std::string> Told(const TreeCheckpoint& trees,
                                         const Result<std::string>& written) {
  return written.ok() ? std::pair<std::string, std::string>("checkpoint_written", *written)
                      : std::pair<std::string, std::string>(
                            "checkpoint_failed",
                            fmt::format("step {}: {}", trees.rounds(), written.status().message()));
}

}  // namespace

Result<std::string> TreeCheckpoint::Encode() const {
  TreeCheckpointProto proto;
  proto.mutable_remembered()->Add(remembered.begin(), remembered.end());
  proto.mutable_shard_rows()->Add(rows.rows.begin(), rows.rows.end());
  proto.mutable_checksums()->Add(rows.checksums.begin(), rows.checksums.end());
  proto.set_judges(judges);
  const size_t size = proto.ByteSizeLong();
  if (size > kMaxBytes) {
    return ResourceExhausted(
        fmt::format("the trees take {} bytes; {} are allowed in a checkpoint", size, kMaxBytes));
  }
  return proto.SerializeAsString();
}

Result<TreeCheckpoint> TreeCheckpoint::Decode(std::string_view bytes, int64_t shards) {
  TreeCheckpointProto proto;
  const auto is_count = [](int64_t rows) { return rows >= -1 && rows <= kMaxCount; };
  if (bytes.size() > kMaxBytes ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) ||
      proto.shard_rows_size() != shards ||
      (proto.checksums_size() != shards && proto.checksums_size() != 0) ||
      !std::all_of(proto.shard_rows().begin(), proto.shard_rows().end(), is_count)) {
    return Internal("a checkpoint of trees is damaged").SqlState("XX001");
  }
  TreeCheckpoint trees;
  for (std::string& what : *proto.mutable_remembered()) {
    trees.remembered.push_back(std::move(what));
  }
  trees.rows.rows.assign(proto.shard_rows().begin(), proto.shard_rows().end());
  trees.rows.checksums.assign(proto.checksums().begin(), proto.checksums().end());
  trees.judges = proto.judges();
  return trees;
}

Result<TreeCheckpoint> TreesToResume(const JobCheckpoints* checkpoints, int64_t shards) {
  if (checkpoints == nullptr || !checkpoints->restore().has_value()) {
    return TreeCheckpoint();
  }
  const CheckpointDirectory::Found& from = *checkpoints->restore();
  if (from.manifest.files.size() != 1 || from.manifest.files.front().bytes > kMaxBytes) {
    return Internal(fmt::format("'{}' is no checkpoint of trees", from.path)).SqlState("XX001");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> source,
                   CheckpointDirectory::OpenPartition(from.path, from.manifest.files.front()));
  std::string bytes(source->left(), '\0');
  RETURN_IF_ERROR(source->Read(bytes.data(), bytes.size()));
  return TreeCheckpoint::Decode(bytes, shards);
}

Status CheckJudges(uint64_t then, uint64_t now) {
  if (then == 0 || now == 0 || then == now) {
    return Status();
  }
  return Status(Code::kAborted,
                "the rows of validation.select are not those of the checkpoint: the source changed "
                "while the job ran")
      .SqlState("40001");
}

void WriteTreesOf(MasterHost& host, const JobCheckpoints& checkpoints, uint64_t judges) {
  TreeCheckpoint trees{.judges = judges};
  const bool running = host.With([&trees](Master& master, TimePoint) {
    if (!master.finished()) {
      trees.remembered = master.remembered();
      trees.rows = master.queue().ledger().known();
    }
    return !master.finished();
  });
  if (!running) {
    return;
  }
  const Result<std::string> written =
      Guarded("writing a checkpoint", [&] { return WriteTrees(checkpoints, trees); });
  const auto [kind, detail] = Told(trees, written);
  host.With([&, kind = kind, detail = detail](Master& master, TimePoint now) {
    master.outbox().AddEvent(kind, detail);
    master.OnCheckpoint(now);
  });
}

LocalTreeCheckpoints::LocalTreeCheckpoints(const TrainingJob& job)
    : job_(job), ledger_(job.dataset.shards_size()), schedule_(job.checkpoints->every_steps()) {}

Status LocalTreeCheckpoints::Restore() {
  ASSIGN_OR_RETURN(trees_, TreesToResume(job_.checkpoints, job_.dataset.shards_size()));
  if (!job_.checkpoints->restore().has_value()) {
    return Status();
  }
  ledger_.Expect(trees_.rows);
  {
    const MutexLock lock(mutex_);
    schedule_.StartFrom(trees_.rounds());
  }
  if (job_.events.on_event) {
    job_.events.on_event("resumed",
                         fmt::format("at step {}, the rounds of trees so far", trees_.rounds()));
  }
  return Status();
}

void LocalTreeCheckpoints::AddRows(const models::FeatureBatch& rows) {
  checksum_ += ChecksumOf(rows);
}

Status LocalTreeCheckpoints::EndShard(ShardId shard, int64_t training_rows) {
  const uint64_t checksum = std::exchange(checksum_, 0);
  RETURN_IF_ERROR(ledger_.CheckChecksum(shard, checksum));
  RETURN_IF_ERROR(ledger_.CheckRows(shard, training_rows));
  ledger_.SawChecksum(shard, checksum);
  ledger_.ShardDone(shard, training_rows);
  return Status();
}

Status LocalTreeCheckpoints::EndJudges() {
  const uint64_t then = std::exchange(trees_.judges, std::exchange(checksum_, 0));
  return CheckJudges(then, trees_.judges);
}

void LocalTreeCheckpoints::Remember(std::string what) {
  trees_.remembered.push_back(std::move(what));
  {
    const MutexLock lock(mutex_);
    if (!schedule_.Begin(trees_.rounds(), SteadyClock().Now())) {
      return;
    }
  }
  trees_.rows = ledger_.known();
  writer_ = std::jthread([this, trees = trees_] { Write(trees); });
}

void LocalTreeCheckpoints::Write(const TreeCheckpoint& trees) {
  LowerPriority();
  const Result<std::string> written =
      Guarded("writing a checkpoint", [&] { return WriteTrees(*job_.checkpoints, trees); });
  if (job_.events.on_event) {
    const auto [kind, detail] = Told(trees, written);
    job_.events.on_event(kind, detail);
  }
  const MutexLock lock(mutex_);
  schedule_.Over(SteadyClock().Now());
}

}  // namespace sluice::elastic
