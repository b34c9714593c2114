#include "elastic/server/replica_inbox_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/guarded.h"
#include "base/log.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/server/replication_internal.h"

namespace sluice::elastic {
namespace {

// A server that ships faster than this replica applies has to wait beyond this.
constexpr size_t kMaxBytes = 256U << 20;

}  // namespace

struct ReplicaInbox::Shipment {
  ReplicateRequest request;
  size_t bytes = 0;
};

ReplicaInbox::ReplicaInbox(ParameterShard& shard)
    : shard_(shard),
      sources_(shard.rules().layout.partitions(), kNoServer),
      adopted_(sources_),
      thread_([this](const std::stop_token& stop) { Work(stop); }) {}

ReplicaInbox::~ReplicaInbox() {
  Close();
}

void ReplicaInbox::Close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  thread_.request_stop();
  changed_.notify_all();
}

Status ReplicaInbox::AwaitRoom() {
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kReplicaPatience;
  while (bytes_ > kMaxBytes && !closed_) {
    if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("this replica is far behind");
    }
  }
  RETURN_IF_ERROR(broken_);
  return closed_ ? Unavailable("the parameter server is stopping") : Status();
}

void ReplicaInbox::Put(ReplicateRequest* request) {
  auto shipment = std::make_unique<Shipment>();
  shipment->request.Swap(request);
  shipment->bytes = shipment->request.ByteSizeLong();
  const MutexLock lock(mutex_);
  bytes_ += shipment->bytes;
  shipments_.push_back(std::move(shipment));
  changed_.notify_all();
}

Status ReplicaInbox::AwaitApplied() {
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kReplicaPatience;
  while (!shipments_.empty() || applying_) {
    if (closed_ || changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("a replica does not come to the end of what it was sent");
    }
  }
  return broken_;
}

void ReplicaInbox::SetSources(std::vector<ServerId> sources) {
  const MutexLock lock(mutex_);
  adopted_ = sources;
  sources_ = std::move(sources);
}

Status ReplicaInbox::broken() const {
  const MutexLock lock(mutex_);
  return broken_;
}

void ReplicaInbox::Work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::unique_ptr<Shipment> next;
    {
      MutexLock lock(mutex_);
      if (shipments_.empty()) {
        if (stop.stop_requested()) {
          return;
        }
        changed_.wait_for(lock.native(), std::chrono::seconds(1));
        continue;
      }
      next = std::move(shipments_.front());
      shipments_.pop_front();
      applying_ = true;
    }
    const Status status = Guarded("following a server", [&] { return Apply(*next); });
    const MutexLock lock(mutex_);
    if (!status.ok() && broken_.ok()) {
      log::Error("a replica cannot follow server {}: {}", next->request.server(), status.message());
      broken_ = status;
    }
    bytes_ -= next->bytes;
    applying_ = false;
    changed_.notify_all();
  }
}

Status ReplicaInbox::Apply(const Shipment& shipment) {
  const ServerId from(shipment.request.server());
  if (shipment.request.stream() > seen_[from].first) {
    BeginStream(from);
  }
  for (const ReplicaEntry& entry : shipment.request.entries()) {
    if (IsNews(from, shipment.request.stream(), entry.sequence())) {
      RETURN_IF_ERROR(ApplyEntry(from, entry));
    }
  }
  return Status();
}

// Between two streams there are pushes that were not shipped, except to the replicas of a map. A
// partition that was shipped whole for a map that was never installed (its master died, say) has
// missed them, and is shipped again if it is wanted.
void ReplicaInbox::BeginStream(ServerId from) {
  const MutexLock lock(mutex_);
  for (size_t partition = 0; partition < sources_.size(); ++partition) {
    if (sources_[partition] == from && adopted_[partition] != from) {
      sources_[partition] = kNoServer;
    }
  }
}

bool ReplicaInbox::IsNews(ServerId from, uint64_t stream, uint64_t sequence) {
  std::pair<uint64_t, uint64_t>& seen = seen_[from];
  if (std::pair(stream, sequence) <= seen) {
    return false;
  }
  seen = {stream, sequence};
  return true;
}

Status ReplicaInbox::ApplyEntry(ServerId from, const ReplicaEntry& entry) {
  const std::vector<uint32_t> partitions(entry.partitions().begin(), entry.partitions().end());
  std::vector<uint8_t> mine(shard_.rules().layout.partitions(), 0);
  {
    const MutexLock lock(mutex_);
    for (uint32_t partition : partitions) {
      if (partition >= mine.size()) {
        return InvalidArgument(fmt::format("partition {} of {}", partition, mine.size()));
      }
      mine[partition] = sources_[partition] == from ? 1 : 0;
    }
  }
  if (!entry.state().empty() && !partitions.empty()) {
    return TakePiece(from, partitions.front(), entry);
  }
  if (entry.keep() > 0) {
    std::vector<uint32_t> followed;
    std::copy_if(partitions.begin(), partitions.end(), std::back_inserter(followed),
                 [&](uint32_t partition) { return mine[partition] != 0; });
    return shard_.KeepBestReplica(followed, entry.keep());
  }
  UnpackedPush push;
  RETURN_IF_ERROR(Unpack(entry.push(), shard_.rules().layout, partitions, &push));
  return shard_.PushReplica(push.request, [&](uint32_t partition) { return mine[partition] != 0; });
}

Status ReplicaInbox::TakePiece(ServerId from, uint32_t partition, const ReplicaEntry& entry) {
  std::deque<std::string>& state = pieces_[partition];
  if (entry.first_piece()) {
    state.clear();
  }
  state.push_back(entry.state());
  if (!entry.last_piece()) {
    return Status();
  }
  PiecesSource bytes(std::move(state));
  pieces_.erase(partition);
  RETURN_IF_ERROR(shard_.Load(partition, bytes));
  const MutexLock lock(mutex_);
  sources_[partition] = from;
  return Status();
}

}  // namespace sluice::elastic
