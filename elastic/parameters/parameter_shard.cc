#include "elastic/parameters/parameter_shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "base/machine.h"
#include "models/model.pb.h"

namespace sluice::elastic {
namespace {

// The dense parameters are allocated at once, with at least one optimizer value for each.
Status CheckMemory(const models::Network& network) {
  double bytes = 0;
  for (const models::DenseTensor& tensor : network.dense()) {
    bytes += 2.0 * sizeof(float) * static_cast<double>(tensor.size());
  }
  const int64_t memory = MachineMemory();
  if (bytes <= static_cast<double>(memory)) {
    return Status();
  }
  return ResourceExhausted(fmt::format("the network's parameters take {:.0f} MiB, and this process "
                                       "has {} MiB of memory",
                                       bytes / (1 << 20), memory >> 20))
      .SqlState("53200")
      .Hint("make the layers smaller");
}

}  // namespace

ParameterShard::ParameterShard(ParameterRules rules)
    : rules_(std::move(rules)), partitions_(rules_.layout.partitions()) {}

Result<std::unique_ptr<ParameterShard>> ParameterShard::Make(const models::ModelSpec& spec,
                                                             const models::Network& network,
                                                             const Options& options,
                                                             const models::NetworkWeights* base) {
  if (base != nullptr) {
    RETURN_IF_ERROR(models::CheckShape(*base, network));
  }
  ASSIGN_OR_RETURN(ParameterRules rules,
                   ParameterRules::Make(spec, network, options.partitions, options.synchronous));
  std::unique_ptr<ParameterShard> shard(new ParameterShard(std::move(rules)));
  if (!options.empty) {
    RETURN_IF_ERROR(CheckMemory(network));
    std::vector<uint32_t> all(options.partitions);
    std::iota(all.begin(), all.end(), 0);
    for (uint32_t partition : all) {
      shard->Create(partition, base);
    }
    shard->Serve(kNoMapVersion, std::move(all));
  }
  return shard;
}

Status ParameterShard::CheckMap(MapVersion map_version) const {
  return map_version == map_version_
             ? Status()
             : NotFound(fmt::format("this server goes by version {} of the map, not {}",
                                    map_version_, map_version));
}

Status ParameterShard::Apply(const PushRequest& request, const RequestCuts& cuts,
                             const std::function<bool(uint32_t)>& mine) {
  const size_t count = request.partitions.size();
  const auto held = [&](size_t i) REQUIRES(mutex_) {  // called with the lock
    const uint32_t partition = request.partitions[i];
    return !mine || mine(partition) ? partitions_[partition].get() : nullptr;
  };
  std::vector<uint8_t> is_new(count, 1);
  if (!rules_.synchronous) {
    for (size_t i = 0; i < count; ++i) {
      if (Partition* partition = held(i)) {
        ASSIGN_OR_RETURN(const bool is, partition->IsNew(request.batch));
        is_new[i] = is ? 1 : 0;
      }
    }
  }
  bool closed = false;
  std::vector<RowSpan> rows(rules_.tables.size());
  for (size_t i = 0; i < count; ++i) {
    Partition* partition = held(i);
    if (partition == nullptr || is_new[i] == 0) {
      continue;
    }
    std::span<const std::span<const float>> dense;
    if (!request.end) {
      dense = std::span(request.dense).subspan(cuts.dense[i], cuts.dense[i + 1] - cuts.dense[i]);
      for (size_t t = 0; t < rows.size(); ++t) {
        const size_t begin = cuts.rows[t][i], size = cuts.rows[t][i + 1] - begin;
        const size_t dimension = rules_.dimensions[t];
        rows[t] = {request.tables[t].ids.subspan(begin, size),
                   request.tables[t].values.subspan(begin * dimension, size * dimension)};
      }
    }
    if (rules_.synchronous) {
      ASSIGN_OR_RETURN(const bool one, partition->PushLane(request.batch, request.weight,
                                                           request.end, dense, rows));
      closed = closed || one;
    } else {
      partition->Apply(request.batch, request.versions[i], dense, rows);
    }
  }
  if (closed) {
    step_closed_.notify_all();
  }
  return Status();
}

Status ParameterShard::Push(const PushRequest& request, const std::function<void()>& applied) {
  ASSIGN_OR_RETURN(const RequestCuts cuts, CutPush(rules_, request, false));
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckMap(request.map_version));
  RETURN_IF_ERROR(Apply(request, cuts, {}));
  if (applied) {
    applied();
  }
  return Status();
}

Status ParameterShard::PushReplica(const PushRequest& request,
                                   const std::function<bool(uint32_t)>& mine) {
  ASSIGN_OR_RETURN(const RequestCuts cuts, CutPush(rules_, request, true));
  const MutexLock lock(mutex_);
  return Apply(request, cuts, mine);
}

Status ParameterShard::ApplyStep(const PushRequest& sum) {
  SLUICE_CHECK(rules_.layout.partitions() == 1, "a replica that holds everything is not cut");
  RETURN_IF_ERROR(CutPush(rules_, sum, false).status());
  const MutexLock lock(mutex_);
  partitions_[0]->ApplyStep(sum.batch, sum.dense, sum.tables);
  return Status();
}

Status ParameterShard::Pull(const PullRequest& request, const PullTarget& target,
                            double wait_seconds) {
  ASSIGN_OR_RETURN(const RequestCuts cuts, CutPull(rules_, request));
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckMap(request.map_version));
  const bool steps = rules_.synchronous && request.purpose == Purpose::kStep;
  const auto ready = [&]() REQUIRES(mutex_) {  // called with the lock
    for (const uint32_t p : request.partitions) {
      if (partitions_[p]->StepReady(request.batch) == Partition::Ready::kNotYet) {
        return false;
      }
    }
    return true;
  };
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(wait_seconds);
  while (steps && !closed_ && !ready()) {
    if (step_closed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Status(Code::kDeadlineExceeded, fmt::format("step {} of round {} is not open yet",
                                                         request.batch.batch, request.batch.round));
    }
    RETURN_IF_ERROR(CheckMap(request.map_version));
  }
  if (closed_) {
    return Cancelled("the parameter server is stopping");
  }
  std::vector<std::span<const int64_t>> ids(rules_.tables.size());
  std::vector<float*> rows(rules_.tables.size());
  std::span<float* const> dense(target.dense);
  const auto absent = request.purpose == Purpose::kEvaluation ? EmbeddingSlab::Absent::kZero
                                                              : EmbeddingSlab::Absent::kInitial;
  for (size_t i = 0; i < request.partitions.size(); ++i) {
    const Partition& partition = *partitions_[request.partitions[i]];
    for (size_t t = 0; t < ids.size(); ++t) {
      const size_t begin = cuts.rows[t][i];
      ids[t] = request.tables[t].subspan(begin, cuts.rows[t][i + 1] - begin);
      rows[t] = target.tables[t] + begin * rules_.dimensions[t];
    }
    const Partition::Ready which =
        steps ? partition.StepReady(request.batch) : Partition::Ready::kNow;
    const size_t chunks = dense.empty() ? 0 : partition.chunks().size();
    const bool known = request.Knows(i, partition.VersionOf(which));
    target.versions[i] = partition.Read(which, dense.first(known ? 0 : chunks), ids, rows, absent);
    dense = dense.subspan(chunks);
  }
  return Status();
}

void ParameterShard::Serve(MapVersion map_version, std::vector<uint32_t> partitions) {
  const MutexLock lock(mutex_);
  for (uint32_t partition : partitions) {
    SLUICE_CHECK(partitions_[partition] != nullptr, "what is served must be held");
  }
  map_version_ = map_version;
  served_ = std::move(partitions);
  step_closed_.notify_all();
}

void ParameterShard::Create(uint32_t partition, const models::NetworkWeights* base) {
  auto fresh = std::make_unique<Partition>(rules_, partition);
  fresh->Initialize(base);
  const MutexLock lock(mutex_);
  partitions_[partition] = std::move(fresh);
}

void ParameterShard::Drop(uint32_t partition) {
  const MutexLock lock(mutex_);
  partitions_[partition].reset();
}

bool ParameterShard::Holds(uint32_t partition) const {
  const MutexLock lock(mutex_);
  return partitions_[partition] != nullptr;
}

Result<PartitionImage> ParameterShard::CaptureHeld(uint32_t partition) const {
  if (partition >= partitions_.size() || partitions_[partition] == nullptr) {
    return NotFound(fmt::format("partition {} is not on this server", partition));
  }
  return partitions_[partition]->Capture();
}

Result<PartitionImage> ParameterShard::Capture(uint32_t partition) const {
  const MutexLock lock(mutex_);
  return CaptureHeld(partition);
}

Status ParameterShard::Save(uint32_t partition, size_t part_bytes, const PartSink& sink,
                            const std::function<Status()>& last) const {
  const MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(PartitionImage image, CaptureHeld(partition));
  RETURN_IF_ERROR(std::move(image).Encode(sink, part_bytes));
  return last ? last() : Status();
}

Result<std::string> ParameterShard::Save(uint32_t partition) const {
  ASSIGN_OR_RETURN(PartitionImage image, Capture(partition));
  return std::move(image).Encode();
}

Status ParameterShard::Load(uint32_t partition, std::string_view bytes) {
  MemorySource source(bytes);
  return Load(partition, source);
}

Status ParameterShard::Load(uint32_t partition, ByteSource& bytes) {
  if (partition >= rules_.layout.partitions()) {
    return InvalidArgument(
        fmt::format("partition {} of {}", partition, rules_.layout.partitions()));
  }
  const MutexLock lock(mutex_);
  if (partitions_[partition] != nullptr) {
    return partitions_[partition]->Load(bytes);
  }
  auto fresh = std::make_unique<Partition>(rules_, partition);
  RETURN_IF_ERROR(fresh->Load(bytes));
  partitions_[partition] = std::move(fresh);
  return Status();
}

std::vector<const float*> ParameterShard::LiveDense() const {
  SLUICE_CHECK(rules_.layout.partitions() == 1, "tensors of several partitions are in pieces");
  const MutexLock lock(mutex_);
  std::vector<const float*> dense;
  for (size_t chunk = 0; chunk < partitions_[0]->chunks().size(); ++chunk) {
    dense.push_back(partitions_[0]->values(chunk));
  }
  return dense;
}

Result<BatchIndex> ParameterShard::AppliedBatches(MapVersion map_version, Epoch epoch,
                                                  ShardId shard) const {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckMap(map_version));
  BatchIndex everywhere = kToTheEnd;
  for (uint32_t partition : served_) {
    everywhere = std::min(everywhere, partitions_[partition]->AppliedBatches(epoch, shard));
  }
  return everywhere;
}

int64_t ParameterShard::version(uint32_t partition) const {
  const MutexLock lock(mutex_);
  return partitions_[partition] == nullptr ? 0 : partitions_[partition]->version();
}

int64_t ParameterShard::rows() const {
  const MutexLock lock(mutex_);
  int64_t rows = 0;
  for (const std::unique_ptr<Partition>& partition : partitions_) {
    rows += partition == nullptr ? 0 : partition->rows();
  }
  return rows;
}

Result<ParameterShard::Kept> ParameterShard::KeepBest(MapVersion map_version,
                                                      const KeepOrder& order,
                                                      const std::function<void()>& kept) {
  Kept best;
  const MutexLock lock(mutex_);
  if (!order.versions.empty() && order.versions.size() != partitions_.size()) {
    return InvalidArgument(fmt::format("an order to keep {} partitions; the job has {}",
                                       order.versions.size(), partitions_.size()));
  }
  RETURN_IF_ERROR(CheckMap(map_version));
  for (uint32_t partition : served_) {
    RETURN_IF_ERROR(partitions_[partition]->KeepBest(order));
    best[partition] = partitions_[partition]->best();
  }
  if (kept) {
    kept();
  }
  return best;
}

// Shipped changes arrive in their original order: the replica is in the state of its primary.
Status ParameterShard::KeepBestReplica(std::span<const uint32_t> partitions, int64_t number) {
  const MutexLock lock(mutex_);
  for (uint32_t partition : partitions) {
    if (partitions_[partition] != nullptr) {
      RETURN_IF_ERROR(partitions_[partition]->KeepBest({.number = number, .versions = {}}));
    }
  }
  return Status();
}

Result<models::NetworkWeights> ParameterShard::Export(MapVersion map_version,
                                                      uint32_t partition) const {
  const MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckMap(map_version));
  if (std::find(served_.begin(), served_.end(), partition) == served_.end()) {
    return NotFound(fmt::format("partition {} is not served here", partition));
  }
  return partitions_[partition]->Export();
}

Result<models::NetworkWeights> ParameterShard::ExportAll(const models::Network& network) const {
  std::vector<models::NetworkWeights> parts;
  const MutexLock lock(mutex_);
  for (const std::unique_ptr<Partition>& partition : partitions_) {
    if (partition == nullptr) {
      return FailedPrecondition("this server does not hold every partition");
    }
    parts.push_back(partition->Export());
  }
  if (parts.size() == 1) {
    return std::move(parts.front());
  }
  return MergePartitions(parts, rules_.layout, network);
}

void ParameterShard::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  step_closed_.notify_all();
}

}  // namespace sluice::elastic
