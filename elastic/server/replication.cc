#include "elastic/server/replication_internal.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "elastic/rpc/elastic.pb.h"
#include "elastic/transport/call_internal.h"
#include "elastic/transport/message_stream_internal.h"

namespace sluice::elastic {
namespace {

// The most that one message ships; later entries go with the next.
constexpr size_t kShipBytes = 32U << 20;
constexpr size_t kPieceBytes = 4U << 20;
constexpr auto kShipRetry = std::chrono::milliseconds(50);

// Entries that are lent to a message rather than copied: pushes are large, and no longer change.
class Loan {
 public:
  Loan(const std::vector<std::shared_ptr<ReplicaEntry>>& entries, ReplicateRequest* request)
      : entries_(*request->mutable_entries()) {
    entries_.Reserve(static_cast<int>(entries.size()));
    for (const std::shared_ptr<ReplicaEntry>& entry : entries) {
      entries_.AddAllocated(entry.get());
    }
  }
  ~Loan() {
    while (!entries_.empty()) {
      (void)entries_.ReleaseLast();
    }
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

 private:
  google::protobuf::RepeatedPtrField<ReplicaEntry>& entries_;
};

}  // namespace

Replication::Replication(Options options, ParameterShard& shard)
    : self_(options.self),
      key_(std::move(options.key)),
      encryption_(Encryption::Make(key_)),
      base_(std::move(options.base)),
      shard_(shard),
      role_(std::make_shared<Role>()),
      inbox_(shard) {}

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
    changed_.notify_all();
  }
  inbox_.Close();
}

std::shared_ptr<const Replication::Role> Replication::role() const {
  const MutexLock lock(mutex_);
  return role_;
}

void Replication::SetRole(MapVersion map_version, std::vector<uint32_t> partitions) {
  auto role = std::make_shared<Role>();
  role->map_version = map_version;
  role->partitions = partitions;
  shard_.Serve(map_version, std::move(partitions));
  const MutexLock lock(mutex_);
  role_ = std::move(role);
  changed_.notify_all();
}

// ---- Shipping to others.

void Replication::Follow(ServerId server, const std::string& address) {
  std::unique_ptr<Follower>& follower = followers_[server];
  if (follower == nullptr) {
    follower = std::make_unique<Follower>();
    follower->sender =
        std::jthread([this, server, address, stream = ++streams_](const std::stop_token& stop) {
          // Over a new connection, or with more memory, it continues where it was. The follower may
          // be gone: then the master tells with a new map.
          while (!stop.stop_requested() && !Guarded("shipping to a replica", [&] {
                                              return Send(server, address, stream, stop);
                                            }).ok()) {
            MutexLock lock(mutex_);
            changed_.wait_for(lock.native(), kShipRetry);
          }
        });
  }
}

void Replication::Ship(const std::shared_ptr<ReplicaEntry>& entry) {
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
  auto until = std::chrono::steady_clock::now() + kReplicaPatience;
  uint64_t seen = arrivals_;
  for (;;) {
    if (arrivals_ != seen) {  // a large partition takes long, but makes progress
      seen = arrivals_;
      until = std::chrono::steady_clock::now() + kReplicaPatience;
    }
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

std::vector<std::shared_ptr<ReplicaEntry>> Replication::NextEntries(ServerId server,
                                                                    const std::stop_token& stop,
                                                                    MapVersion* map_version) {
  std::vector<std::shared_ptr<ReplicaEntry>> entries;
  MutexLock lock(mutex_);
  while (entries.empty() && !stop.stop_requested()) {
    size_t bytes = 0;
    for (const std::shared_ptr<ReplicaEntry>& entry : followers_.at(server)->queue) {
      bytes += entry->ByteSizeLong();
      if (bytes > kShipBytes && !entries.empty()) {
        break;  // a push of the maximum message size is sent alone
      }
      entries.push_back(entry);
    }
    if (entries.empty()) {
      changed_.wait_for(lock.native(), std::chrono::seconds(1));
    }
  }
  *map_version = role_->map_version;
  return entries;
}

Status Replication::Send(ServerId server, const std::string& address, uint64_t stream,
                         const std::stop_token& stop) {
  RETURN_IF_ERROR(encryption_.status());
  ASSIGN_OR_RETURN(
      MessageStream connection,
      MessageStream::Connect(address, key_, encryption_->get(),
                             std::chrono::steady_clock::now() + MessageStream::kConnecting, stop));
  const Socket control = connection.Control();
  if (!control.open()) {
    return SystemError("a connection to a replica");
  }
  const std::stop_callback end(
      stop, [&control] { static_cast<void>(shutdown(control.descriptor(), SHUT_RDWR)); });
  for (;;) {
    MapVersion map_version;
    const std::vector<std::shared_ptr<ReplicaEntry>> entries =
        NextEntries(server, stop, &map_version);
    if (entries.empty()) {
      return Status();
    }
    ExchangeRequest request;
    ReplicateRequest& shipment = *request.mutable_shipment();
    shipment.set_server(self_.value());
    shipment.set_stream(stream);
    shipment.set_map_version(map_version.value());
    const Loan loan(entries, &shipment);
    const auto until = std::chrono::steady_clock::now() + kCallDeadline;
    RETURN_IF_ERROR(connection.Send(request, until));
    ExchangeReply reply;
    RETURN_IF_ERROR(connection.Receive(&reply, until));
    const MutexLock lock(mutex_);
    const auto found = followers_.find(server);
    if (stop.stop_requested() || found == followers_.end()) {
      return Status();
    }
    if (reply.refused()) {
      given_up_ = true;
      role_ = std::make_shared<Role>();
      changed_.notify_all();
      return Status();  // it would be refused again
    }
    ++arrivals_;
    found->second->queue.erase(
        found->second->queue.begin(),
        found->second->queue.begin() + static_cast<std::ptrdiff_t>(entries.size()));
    changed_.notify_all();
  }
}

// ---- The master's orders.

void Replication::Expect(MapVersion map_version) {
  const MutexLock lock(mutex_);
  expected_ = std::max(expected_, map_version);
  changed_.notify_all();
}

Status Replication::Freeze(const PartitionMap& map) {
  if (map.version < role()->map_version) {
    return Status(Code::kAborted, "an order of an older map");
  }
  SetRole(map.version, {});
  MutexLock lock(mutex_);
  const auto until = std::chrono::steady_clock::now() + kReplicaPatience;
  // Pushes that a follower has not received yet were not acknowledged or are on the way.
  while (!std::all_of(followers_.begin(), followers_.end(), [&](const auto& f) {
    return f.second->queue.empty() || !map.servers.contains(f.first);
  })) {
    if (expected_ > map.version) {
      return Status(Code::kAborted, "a newer map is ordered");  // perhaps without that follower
    }
    if (closed_ || changed_.wait_until(lock.native(), until) == std::cv_status::timeout) {
      return Unavailable("a replica does not take what it is sent");
    }
  }
  return Status();
}

Status Replication::Adopt(const PartitionMap& map, const Create& create, bool anew) {
  if (map.version < role()->map_version) {
    return Status(Code::kAborted, "an order of an older map");
  }
  {
    // From here on servers that the map gives up are refused; what they shipped before counts.
    const MutexLock lock(mutex_);
    map_ = map;
  }
  RETURN_IF_ERROR(inbox_.AwaitApplied());
  std::vector<ServerId> sources;
  for (uint32_t p = 0; p < map.primary.size(); ++p) {
    sources.push_back(map.backup[p] == self_ ? map.primary[p] : kNoServer);
  }
  inbox_.SetSources(std::move(sources));
  std::vector<std::unique_ptr<Follower>> dropped;
  {
    const MutexLock lock(mutex_);
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
  // The last piece is recognised only when none follows.
  std::shared_ptr<ReplicaEntry> held;
  bool begun = false;
  const auto put = [&](bool last) {
    held->set_last_piece(last);
    const MutexLock lock(mutex_);
    if (!followers_.contains(server)) {
      return Status(Code::kAborted, "the map has changed while a partition was copied");
    }
    held->set_sequence(++sequence_);
    followers_[server]->queue.push_back(std::move(held));
    changed_.notify_all();
    return Status();
  };
  // Under the shard's lock: later pushes come after the state.
  const PartSink sink = [&](std::string part) {
    Status status;
    if (held == nullptr) {
      const MutexLock lock(mutex_);
      Follow(server, address);
    } else {
      status = put(false);
    }
    held = std::make_shared<ReplicaEntry>();
    held->add_partitions(partition);
    held->set_state(std::move(part));
    held->set_first_piece(!std::exchange(begun, true));
    return status;
  };
  // The last piece, too: a push shipped before it would be lost on the replica.
  RETURN_IF_ERROR(shard_.Save(partition, kPieceBytes, sink, [&put] { return put(true); }));
  return WaitShipped();
}

// ---- Receiving from others.

Result<bool> Replication::Receive(ReplicateRequest* request) {
  RETURN_IF_ERROR(inbox_.AwaitRoom());
  const MutexLock lock(mutex_);
  if (MapVersion(request->map_version()) < map_.version) {
    for (const ReplicaEntry& entry : request->entries()) {
      for (uint32_t partition : entry.partitions()) {
        if (partition >= map_.primary.size() ||
            map_.primary[partition] != ServerId(request->server())) {
          return false;
        }
      }
    }
  }
  inbox_.Put(request);
  return true;
}

}  // namespace sluice::elastic
