// First: gRPC defines macros with the names of ours.
#include "elastic/rpc/grpc_links.h"

#include <fmt/core.h>

#include <algorithm>
#include <thread>

#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/transport/message_stream_internal.h"

namespace sluice::elastic {
namespace {

constexpr auto kRetryWait = std::chrono::milliseconds(20);
// While servers are awaited, how often the master is asked whether they are still the right ones.
constexpr auto kMapCheck = std::chrono::milliseconds(500);

class RemoteParameters final : public ParameterLink {
 public:
  RemoteParameters(const PartitionMap& map, MapSource newer_map, JobKey key,
                   const models::Network& network, bool bf16, std::stop_token stop)
      : key_(std::move(key)),
        encryption_(Encryption::Make(key_)),
        stop_(std::move(stop)),
        newer_map_(std::move(newer_map)),
        packer_(network, static_cast<uint32_t>(map.primary.size()), bf16) {
    Follow(map);
  }

  Status Pull(const BatchIdentity& batch, Purpose purpose, models::ParameterView* view) override {
    return Exchange({.pull = &batch, .purpose = purpose, .wanted = view});
  }

  Status Push(const BatchIdentity& batch, double weight, const models::ParameterView& view,
              const models::Gradient& gradient) override {
    const BatchPush push{batch, weight, &view, &gradient};
    return PushAll({&push, 1});
  }

  Status PushAll(std::span<const BatchPush> pushes) override {
    return Exchange({.pushes = pushes});
  }

  Status PushAndPull(std::span<const BatchPush> pushes, const BatchIdentity& next,
                     models::ParameterView* next_view,
                     const std::function<void()>& meanwhile) override {
    bool ran = false;
    const std::function<void()> once = [&] {
      if (!std::exchange(ran, true)) {
        meanwhile();
      }
    };
    return Exchange({.pushes = pushes, .pull = &next, .wanted = next_view}, once);
  }

  Status PushEnd(const BatchIdentity& batch) override {
    const BatchPush end{.batch = batch};
    return Exchange({.pushes = {&end, 1}});
  }

  std::vector<int64_t> Versions() const override { return packer_.versions(); }

  Result<BatchIndex> AppliedBatches(Epoch epoch, ShardId shard) override {
    const auto give_up = GiveUp();
    for (;;) {
      BatchIndex everywhere = kToTheEnd;
      bool again = false;
      for (Server& server : servers_) {
        AppliedRequest request;
        request.set_epoch(epoch.value());
        request.set_shard(shard.value());
        request.set_map_version(map_.version.value());
        AppliedReply reply;
        grpc::ClientContext context;
        Prepare(&context, key_.token);
        if (server.stub == nullptr) {
          server.stub = ParameterService::NewStub(OpenChannel(server.address, key_));
        }
        server.status =
            FromGrpc(server.stub->Applied(&context, request, &reply), server.part.server);
        again = again || Unreachable(server) || reply.wrong_owner();
        if (!server.status.ok() && !Unreachable(server)) {
          return server.status;
        }
        everywhere = std::min(everywhere, BatchIndex(reply.batches()));
      }
      if (!again) {
        return everywhere;
      }
      RETURN_IF_ERROR(LookForMap(give_up).status());
    }
  }

 private:
  struct Server {
    ExchangePart part;
    std::string address;
    MessageStream stream;
    std::unique_ptr<ParameterService::Stub> stub;  // for all but exchanges; null: not used yet
    bool answered = false;
    Status status;
  };
  using Work = ExchangePacker::Work;
  using Clock = std::chrono::steady_clock;

  static Clock::time_point GiveUp() {
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                              std::chrono::duration<double>(kRetrySeconds));
  }
  static bool Unreachable(const Server& server) {
    return server.status.code() == Code::kUnavailable ||
           server.status.code() == Code::kDeadlineExceeded ||
           server.status.code() == Code::kCancelled;
  }

  void Follow(const PartitionMap& map) {
    std::vector<Server> servers;
    for (const auto& [id, address] : map.servers) {
      Server server;
      server.part.partitions = map.PrimariesOf(id);
      if (server.part.partitions.empty()) {
        continue;
      }
      server.part.server = fmt::format("parameter server {} at {}", id, address);
      server.address = address;
      servers.push_back(std::move(server));
    }
    servers_.swap(servers);
    parts_.clear();
    for (Server& server : servers_) {
      parts_.push_back(&server.part);
    }
    packer_.Forget();
    map_ = map;
  }

  // True: there is a newer map. Waits a little in either case.
  Result<bool> LookForMap(Clock::time_point give_up) {
    if (stop_.stop_requested() || Clock::now() > give_up) {
      for (const Server& server : servers_) {
        if (!server.answered) {
          return Unavailable(
              fmt::format("{} cannot be reached: {}", server.part.server, server.status.message()));
        }
      }
      return Unavailable("the parameter servers cannot be reached");
    }
    ASSIGN_OR_RETURN(const PartitionMap map, newer_map_(map_.version));
    if (map.version > map_.version) {
      if (map.primary.size() != map_.primary.size()) {
        return Internal(fmt::format("a map of {} partitions after one of {}", map.primary.size(),
                                    map_.primary.size()));
      }
      Follow(map);
      return true;
    }
    std::this_thread::sleep_for(kRetryWait);
    return false;
  }

  Status Build(const Work& work) {
    packer_.Pack(work, parts_);
    for (Server& server : servers_) {
      server.part.request.set_map_version(map_.version.value());
      server.answered = false;
      const size_t bytes = server.part.request.ByteSizeLong();
      if (bytes > static_cast<size_t>(kMaxMessageBytes)) {
        return TooLarge("a worker's exchange", bytes);
      }
    }
    return Status();
  }

  // Calls all servers at the same time, and repeats the calls that were not answered, with the same
  // batch: a server that has applied it already says so.
  Status Exchange(
      const Work& work, const std::function<void()>& meanwhile = [] {}) {
    const auto give_up = GiveUp();
    RETURN_IF_ERROR(Build(work));
    for (;;) {
      ExchangeOnce(meanwhile);
      bool again = false;
      for (Server& server : servers_) {
        if (!server.status.ok() && !Unreachable(server)) {
          return server.status;
        }
        server.answered = server.status.ok() && !server.part.reply.wrong_owner();
        again = again || !server.answered;
      }
      if (!again) {
        return work.pull == nullptr ? Status() : TakeReplies(work.wanted);
      }
      ASSIGN_OR_RETURN(const bool moved, LookForMap(give_up));
      if (moved) {
        RETURN_IF_ERROR(Build(work));
      }
    }
  }

  // To all servers at the same time.
  void ExchangeOnce(const std::function<void()>& meanwhile) {
    const auto until = Clock::now() + kCallDeadline;
    for (Server& server : servers_) {
      if (!server.answered) {
        server.status = Send(server, until);
      }
    }
    meanwhile();
    for (Server& server : servers_) {
      if (!server.answered && server.status.ok()) {
        server.status = Receive(server, until);
      }
    }
  }

  Status Send(Server& server, Clock::time_point until) const {
    if (!server.stream.open()) {
      const auto connected = std::min(until, Clock::now() + MessageStream::kConnecting);
      RETURN_IF_ERROR(encryption_.status());
      Result<MessageStream> stream =
          MessageStream::Connect(server.address, key_, encryption_->get(), connected);
      if (stream.status().code() == Code::kPermissionDenied) {
        // The server is gone, and its address belongs to another job: the next map says so.
        return Unavailable(stream.status().message());
      }
      RETURN_IF_ERROR(stream.status());
      server.stream = *std::move(stream);
    }
    return server.stream.Send(server.part.request, until);
  }

  // A server that hangs is given up by the master long before the call's deadline.
  Status Receive(Server& server, Clock::time_point until) {
    for (;;) {
      const auto look = std::min(until, Clock::now() + kMapCheck);
      Status status = server.stream.Receive(&server.part.reply, look);
      if (status.code() != Code::kDeadlineExceeded || !server.stream.open()) {
        return status;
      }
      const Result<PartitionMap> map = newer_map_(kNoMapVersion);
      if (Clock::now() >= until || stop_.stop_requested() ||
          (map.ok() && map->version > map_.version)) {
        server.stream = MessageStream();  // an answer may still come
        return Unavailable("there was no answer in time");
      }
    }
  }

  Status TakeReplies(models::ParameterView* view) {
    for (const Server& server : servers_) {
      if (server.part.reply.not_open()) {
        return Status(Code::kDeadlineExceeded, "the step is not open yet");
      }
    }
    return packer_.Take(parts_, view);
  }

  const JobKey key_;
  const Result<std::shared_ptr<const Encryption>> encryption_;
  const std::stop_token stop_;
  const MapSource newer_map_;
  ExchangePacker packer_;
  PartitionMap map_;
  std::vector<Server> servers_;
  std::vector<ExchangePart*> parts_;  // the servers'
};

}  // namespace

std::unique_ptr<ParameterLink> ConnectParameters(const PartitionMap& map, MapSource newer_map,
                                                 const JobKey& key, const models::Network& network,
                                                 bool bf16, std::stop_token stop) {
  return std::make_unique<RemoteParameters>(map, std::move(newer_map), key, network, bf16,
                                            std::move(stop));
}

}  // namespace sluice::elastic
