#include "elastic/replication_internal.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "elastic/elastic.grpc.pb.h"
#include "elastic/wire_internal.h"

namespace sluice::elastic {
namespace {

// One call ships at most so much; what comes meanwhile goes with the next.
constexpr size_t kShipBytes = 32U << 20;
constexpr size_t kPieceBytes = 4U << 20;
constexpr auto kShipRetry = std::chrono::milliseconds(50);
// A follower that applies more slowly than it is sent to holds the sender up beyond this.
constexpr size_t kInboundBytes = 256U << 20;
// For things that take milliseconds; a process that hangs is the master's business.
constexpr auto kPatience = std::chrono::seconds(15);

}  // namespace

struct Replication::Inbound {
  ServerId from = kNoServer;
  ReplicateRequest request;
  size_t bytes = 0;
};

Replication::Replication(Options options, ParameterShard& shard)
    : self_(options.self),
      token_(std::move(options.token)),
      base_(std::move(options.base)),
      shard_(shard),
      role_(std::make_shared<Role>()),
      sources_(shard.rules().layout.partitions(), kNoServer),
      applier_([this](const std::stop_token& stop) { ApplyInbound(stop); }) {}

Replication::~Replication() {
  Close();
}

void Replication::Close() {
  std::map<ServerId, std::unique_ptr<Follower>> followers;
  {
    const MutexLock lock(mutex_);
    closed_ = true;
    followers.swap(followers_);
    for (const auto& [server, follower] : followers) {
      follower->sender.request_stop();
    }
    applier_.request_stop();
    changed_.notify_all();
  }
}

std::shared_ptr<const Replication::Role> Replication::role() const {
  const MutexLock lock(mutex_);
  return role_;
}

void Replication::SetRole(uint64_t map_version, std::vector<uint32_t> partitions) {
  auto role = std::make_shared<Role>();
  role->map_version = map_version;
  for (uint32_t partition : partitions) {
    role->dense_size += shard_.rules().layout.dense_size(partition);
  }
  role->partitions = partitions;
  shard_.Serve(map_version, std::move(partitions));
  const MutexLock lock(mutex_);
  role_ = std::move(role);
  changed_.notify_all();
}

// ---- What this server ships.

void Replication::Follow(ServerId server, const std::string& address) {
  std::unique_ptr<Follower>& follower = followers_[server];
  if (follower == nullptr) {
    follower = std::make_unique<Follower>();
    follower->sender =
        std::jthread([this, server, address, stream = ++streams_](const std::stop_token& stop) {
          Send(server, address, stream, stop);
        });
  }
}

void Replication::Ship(std::shared_ptr<ReplicaEntry> entry) {
  const MutexLock lock(mutex_);
  entry->set_sequence(++sequence_);
  for (const auto& [server, follower] : followers_) {
    follower->queue.push_back(entry);
  }
  if (!followers_.empty()) {
    changed_.notify_all();
  }
}

bool Replication::Arrived(const Follower& follower, uint64_t sequence) const {
  return follower.queue.empty() || follower.queue.front()->sequence() > sequence;
}

Status Replication::WaitShipped() {
  MutexLock lock(mutex_);
  const uint64_t sequence = sequence_;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    if (given_up_) {
      return NotFound("this parameter server has been given up");
    }
    if (closed_) {
      return Cancelled("the parameter server is stopping");
    }
    if (std::all_of(followers_.begin(), followers_.end(),
                    [&](const auto& f) { return Arrived(*f.second, sequence); })) {
      return Status();
    }
    if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("a replica does not take what it is sent");
    }
  }
}

void Replication::Send(ServerId server, const std::string& address, uint64_t stream,
                       const std::stop_token& stop) {
  const auto stub = ParameterService::NewStub(OpenChannel(address));
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<ReplicaEntry>> entries;
    ReplicateRequest request;
    {
      MutexLock lock(mutex_);
      const auto found = followers_.find(server);
      if (stop.stop_requested() || found == followers_.end()) {
        return;
      }
      if (found->second->queue.empty()) {
        changed_.wait_for(lock.native(), std::chrono::seconds(1));
        continue;
      }
      size_t bytes = 0;
      for (const std::shared_ptr<ReplicaEntry>& entry : found->second->queue) {
        if (bytes > kShipBytes) {
          break;
        }
        bytes += entry->state().size() + entry->push().dense().size();
        entries.push_back(entry);
      }
      request.set_map_version(role_->map_version);
    }
    request.set_server(self_);
    request.set_stream(stream);
    // Lent, not copied: pushes are large, and nobody changes them any more.
    for (const std::shared_ptr<ReplicaEntry>& entry : entries) {
      request.mutable_entries()->AddAllocated(entry.get());
    }
    grpc::ClientContext context;
    const std::stop_callback cancel(stop, [&context] { context.TryCancel(); });
    Prepare(&context, token_);
    ReplicateReply reply;
    const grpc::Status status = stub->Replicate(&context, request, &reply);
    while (!request.entries().empty()) {
      (void)request.mutable_entries()->ReleaseLast();
    }
    MutexLock lock(mutex_);
    const auto found = followers_.find(server);
    if (stop.stop_requested() || found == followers_.end()) {
      return;
    }
    if (!status.ok()) {
      // The follower may be gone: then the master says so by a new map.
      changed_.wait_for(lock.native(), kShipRetry);
      continue;
    }
    if (reply.refused()) {
      given_up_ = true;
      role_ = std::make_shared<Role>();
    } else {
      found->second->queue.erase(
          found->second->queue.begin(),
          found->second->queue.begin() + static_cast<std::ptrdiff_t>(entries.size()));
    }
    changed_.notify_all();
  }
}

// ---- The master's orders.

Status Replication::Freeze(const PartitionMap& map) {
  if (map.version < role()->map_version) {
    return Status(Code::kAborted, "an order of an older map");
  }
  SetRole(map.version, {});
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  // What followers that are still there have not got yet was not acknowledged or is under way.
  while (!std::all_of(followers_.begin(), followers_.end(), [&](const auto& f) {
    return f.second->queue.empty() || !map.servers.contains(f.first);
  })) {
    if (closed_ || changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("a replica does not take what it is sent");
    }
  }
  return Status();
}

Status Replication::WaitApplied() {
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (!inbound_.empty() || applying_) {
    if (closed_ || changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("a replica does not come to the end of what it was sent");
    }
  }
  return broken_;
}

Status Replication::Adopt(const PartitionMap& map, const Create& create, bool anew) {
  if (map.version < role()->map_version) {
    return Status(Code::kAborted, "an order of an older map");
  }
  RETURN_IF_ERROR(WaitApplied());
  std::vector<std::unique_ptr<Follower>> dropped;
  {
    const MutexLock lock(mutex_);
    map_ = map;
    for (uint32_t p = 0; p < map.primary.size(); ++p) {
      sources_[p] = map.backup[p] == self_ ? map.primary[p] : kNoServer;
    }
    for (auto follower = followers_.begin(); follower != followers_.end();) {
      follower->second->sender.request_stop();
      dropped.push_back(std::move(follower->second));
      follower = followers_.erase(follower);
    }
    for (uint32_t p = 0; p < map.primary.size(); ++p) {
      if (map.primary[p] == self_ && map.backup[p] != kNoServer) {
        Follow(map.backup[p], map.servers.at(map.backup[p]));
      }
    }
    changed_.notify_all();
  }
  dropped.clear();
  for (uint32_t p = 0; p < map.primary.size(); ++p) {
    const bool mine = map.primary[p] == self_ || map.backup[p] == self_;
    if (!mine || (shard_.Holds(p) && !anew)) {
      continue;
    }
    if (!create) {
      return Internal(fmt::format("partition {} was never copied to this server", p));
    }
    RETURN_IF_ERROR(create(p));
  }
  SetRole(map.version, map.PrimariesOf(self_));
  return Status();
}

Status Replication::CreateFresh(uint32_t partition) {
  shard_.Create(partition, base_.get());
  return Status();
}

void Replication::Release(const PartitionMap& map) {
  if (role()->map_version != map.version) {
    return;
  }
  for (uint32_t p = 0; p < map.primary.size(); ++p) {
    if (map.primary[p] != self_ && map.backup[p] != self_) {
      shard_.Drop(p);
    }
  }
  base_.reset();
}

Status Replication::Fill(uint32_t partition, ServerId server, const std::string& address) {
  const ParameterShard::Saved saved = [&](const std::string& bytes) {
    // Under the shard's lock: what is pushed from now on comes after the state.
    {
      const MutexLock lock(mutex_);
      Follow(server, address);
    }
    for (size_t begin = 0; begin < bytes.size(); begin += kPieceBytes) {
      auto entry = std::make_shared<ReplicaEntry>();
      entry->add_partitions(partition);
      entry->set_state(bytes.substr(begin, kPieceBytes));
      entry->set_first_piece(begin == 0);
      entry->set_last_piece(begin + kPieceBytes >= bytes.size());
      const MutexLock lock(mutex_);
      entry->set_sequence(++sequence_);
      followers_[server]->queue.push_back(std::move(entry));
    }
    const MutexLock lock(mutex_);
    changed_.notify_all();
  };
  RETURN_IF_ERROR(shard_.Save(partition, saved).status());
  return WaitShipped();
}

// ---- What others ship to this server.

Result<bool> Replication::Receive(ReplicateRequest* message) {
  auto inbound = std::make_unique<Inbound>();
  inbound->request.Swap(message);
  const ReplicateRequest& request = inbound->request;
  inbound->from = request.server();
  inbound->bytes = request.ByteSizeLong();
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (inbound_bytes_ > kInboundBytes && !closed_) {
    if (changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("this replica is far behind");
    }
  }
  RETURN_IF_ERROR(broken_);
  if (closed_) {
    return Unavailable("the parameter server is stopping");
  }
  if (request.map_version() < map_.version) {
    for (const ReplicaEntry& entry : request.entries()) {
      for (uint32_t partition : entry.partitions()) {
        if (partition >= map_.primary.size() || map_.primary[partition] != request.server()) {
          return false;
        }
      }
    }
  }
  inbound_bytes_ += inbound->bytes;
  inbound_.push_back(std::move(inbound));
  changed_.notify_all();
  return true;
}

void Replication::ApplyInbound(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::unique_ptr<Inbound> next;
    {
      MutexLock lock(mutex_);
      if (inbound_.empty()) {
        if (stop.stop_requested()) {
          return;
        }
        changed_.wait_for(lock.native(), std::chrono::seconds(1));
        continue;
      }
      next = std::move(inbound_.front());
      inbound_.pop_front();
      applying_ = true;
    }
    Status status;
    for (const ReplicaEntry& entry : next->request.entries()) {
      bool news = false;
      {
        const MutexLock lock(mutex_);
        news = IsNews(next->from, next->request.stream(), entry.sequence());
      }
      if (status.ok() && news) {
        status = ApplyEntry(next->from, entry);
      }
    }
    const MutexLock lock(mutex_);
    if (!status.ok() && broken_.ok()) {
      log::Error("a replica cannot follow server {}: {}", next->from, status.message());
      broken_ = status;
    }
    inbound_bytes_ -= next->bytes;
    applying_ = false;
    changed_.notify_all();
  }
}

bool Replication::IsNews(ServerId from, uint64_t stream, uint64_t sequence) {
  std::pair<uint64_t, uint64_t>& seen = seen_[from];
  if (std::pair(stream, sequence) <= seen) {
    return false;
  }
  seen = {stream, sequence};
  return true;
}

Status Replication::ApplyEntry(ServerId from, const ReplicaEntry& entry) {
  const std::vector<uint32_t> partitions(entry.partitions().begin(), entry.partitions().end());
  std::vector<uint8_t> mine(shard_.rules().layout.partitions(), 0);
  for (uint32_t partition : partitions) {
    if (partition >= mine.size()) {
      return InvalidArgument(fmt::format("partition {} of {}", partition, mine.size()));
    }
    const MutexLock lock(mutex_);
    mine[partition] = sources_[partition] == from ? 1 : 0;
  }
  if (!entry.state().empty() && !partitions.empty()) {
    const uint32_t partition = partitions.front();
    std::string& state = pieces_[partition];
    if (entry.first_piece()) {
      state.clear();
    }
    state += entry.state();
    if (entry.last_piece()) {
      const Status loaded = shard_.Load(partition, state);
      pieces_.erase(partition);
      RETURN_IF_ERROR(loaded);
      const MutexLock lock(mutex_);
      sources_[partition] = from;
    }
    return Status();
  }
  if (entry.keep()) {
    std::vector<uint32_t> followed;
    std::copy_if(partitions.begin(), partitions.end(), std::back_inserter(followed),
                 [&](uint32_t partition) { return mine[partition] != 0; });
    shard_.KeepBestReplica(followed);
    return Status();
  }
  UnpackedPush push;
  RETURN_IF_ERROR(Unpack(entry.push(), shard_.rules().layout, partitions, &push));
  return shard_.PushReplica(push.request, [&](uint32_t partition) { return mine[partition] != 0; });
}

}  // namespace sluice::elastic
