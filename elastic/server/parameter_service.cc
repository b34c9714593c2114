#include "elastic/server/parameter_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "elastic/ids.h"
#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/exchange_internal.h"
#include "elastic/rpc/job_endpoint.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/server/replication_internal.h"
#include "elastic/server/server_snapshot_internal.h"
#include "elastic/transport/socket.h"
#include "elastic/transport/stream_server_internal.h"

namespace sluice::elastic {
namespace {

// How long a pull for a step that is not open yet waits in the server; then the worker checks
// whether there are lanes without a holder.
constexpr double kStepWaitSeconds = 0.05;
constexpr auto kForever = MessageStream::Deadline::max();
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);
// Pushes of several workers and shipments of other servers arriving at the same time.
constexpr ServerLimits kLimits{.name = "parameter server",
                               .max_request_bytes = kMaxMessageBytes + kEnvelopeBytes,
                               .max_answer_bytes = kMaxMessageBytes,
                               .memory_bytes = size_t{8} * kMaxMessageBytes};

class Service final : public ParameterService::StreamedService {
 public:
  template <typename Request, typename Reply>
  using Call = grpc::ServerUnaryStreamer<Request, Reply>;

  Service(ParameterServer::Options options, ParameterShard& shard)
      : key_(options.key),
        shard_(shard),
        replication_({options.self, options.key, std::move(options.base)}, shard) {}

  // Answers a worker's exchanges, or takes another server's shipments.
  void Serve(MessageStream& stream) {
    while (stream.open()) {
      ExchangeRequest request;  // of each its own: a large one leaves nothing behind
      ExchangeReply reply;
      Status status = stream.Receive(&request, kForever);
      if (!stream.open()) {
        return;
      }
      const auto until = std::chrono::steady_clock::now() + kCallDeadline;
      if (status.ok()) {
        status = Guarded("an exchange", [&] {
          return request.has_shipment() ? TakeShipment(request.mutable_shipment(), &reply)
                                        : RunExchange(&request, &reply);
        });
      }
      if (status.ok()) {
        status = stream.Send(reply, until);
      }
      if (!status.ok() && stream.open()) {
        // Who is gone needs none.
        static_cast<void>(stream.SendError(status, until));
      }
    }
  }

  grpc::Status StreamedApplied(grpc::ServerContext* context,
                               Call<AppliedRequest, AppliedReply>* call) override {
    return ForMember(*context, call, [this](const AppliedRequest* request, AppliedReply* reply) {
      const Result<BatchIndex> batches = shard_.AppliedBatches(
          MapVersion(request->map_version()), Epoch(request->epoch()), ShardId(request->shard()));
      if (batches.status().code() == Code::kNotFound) {
        reply->set_wrong_owner(true);
        return Status();
      }
      if (batches.ok()) {
        reply->set_batches(batches->value());
      }
      return batches.ok() ? CheckNotForgotten() : batches.status();
    });
  }

  grpc::Status StreamedKeep(grpc::ServerContext* context,
                            Call<KeepRequest, KeepReply>* call) override {
    return ForMaster(*context, call, [this](const KeepRequest* request, KeepReply* reply) {
      return KeepWeights(*request, reply);
    });
  }

  grpc::Status StreamedExport(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<ExportRequest, ExportChunk>* call) override {
    return ForMaster(*context, call,
                     [this](const ExportRequest& request) { return ExportWeights(request); });
  }

  grpc::Status StreamedInstall(grpc::ServerContext* context,
                               Call<InstallRequest, InstallReply>* call) override {
    return ForMaster(*context, call, [this](const InstallRequest* request, InstallReply*) {
      return TakeOrder(*request);
    });
  }

  grpc::Status StreamedFill(grpc::ServerContext* context,
                            Call<FillRequest, FillReply>* call) override {
    return ForMaster(*context, call, [this](const FillRequest* request, FillReply*) {
      return replication_.Fill(request->partition(), ServerId(request->server()),
                               request->address());
    });
  }

  grpc::Status StreamedSnapshot(grpc::ServerContext* context,
                                Call<SnapshotRequest, SnapshotReply>* call) override {
    return ForMaster(*context, call, [this](const SnapshotRequest* request, SnapshotReply*) {
      return TakeSnapshot(*request);
    });
  }

  grpc::Status StreamedWrite(grpc::ServerContext* context,
                             Call<WriteRequest, WriteReply>* call) override {
    return ForMaster(*context, call, [this](const WriteRequest* request, WriteReply* reply) {
      return WriteSnapshot(*request, reply);
    });
  }

  void AnsweredByMaster(std::chrono::steady_clock::time_point asked) {
    constexpr std::chrono::duration<double> kSilence(kServerSilenceSeconds);
    const auto until = asked + std::chrono::duration_cast<std::chrono::nanoseconds>(kSilence);
    trusted_until_.store(until.time_since_epoch().count());
  }

  Status health() const { return replication_.health(); }

  void Close() {
    shard_.Close();
    replication_.Close();
  }

 private:
  template <typename AnyCall, typename Handle>
  grpc::Status ForMember(const grpc::ServerContext& context, AnyCall* call,
                         const Handle& handle) const {
    const grpc::Status allowed = CheckToken(context, key_);
    return allowed.ok() ? AnswerCall(call, handle) : allowed;
  }
  template <typename AnyCall, typename Handle>
  grpc::Status ForMaster(const grpc::ServerContext& context, AnyCall* call, const Handle& handle) {
    const grpc::Status allowed = CheckMaster(context);
    return allowed.ok() ? AnswerCall(call, handle) : allowed;
  }

  Status RunExchange(ExchangeRequest* request, ExchangeReply* reply) {
    const std::shared_ptr<const Replication::Role> role = replication_.role();
    Status status = CheckNotForgotten();
    if (status.ok() && role->map_version != MapVersion(request->map_version())) {
      status = NotFound("another map");
    }
    if (status.ok() && request->has_push()) {
      status = Push(*role, request->mutable_push());
    }
    // Pushes repeated because a later one was refused are recognised and change nothing.
    for (PushProto& push : *request->mutable_further_pushes()) {
      status = status.ok() ? Push(*role, &push) : status;
    }
    if (status.ok() && request->has_pull()) {
      status = AnswerPull(request->pull(), role->map_version, role->partitions, kStepWaitSeconds,
                          shard_, reply);
    }
    if (status.ok() && request->has_push()) {
      // Last, so that the pull is answered while the followers receive the push.
      status = replication_.WaitShipped();
    }
    if (status.ok()) {
      status = CheckNotForgotten();  // it may have been asleep at any point
    }
    if (status.code() == Code::kNotFound) {
      reply->Clear();
      reply->set_wrong_owner(true);
      reply->set_map_version(role->map_version.value());
      return Status();
    }
    return status;
  }

  Status TakeShipment(ReplicateRequest* shipment, ExchangeReply* reply) {
    ASSIGN_OR_RETURN(const bool taken, replication_.Receive(shipment));
    reply->set_refused(!taken);
    return Status();
  }

  Status KeepWeights(const KeepRequest& request, KeepReply* reply) {
    KeepOrder order{request.number(), {request.versions().begin(), request.versions().end()}};
    if (order.number < 1) {
      return InvalidArgument("an order to keep weights without a number");
    }
    auto entry = std::make_shared<ReplicaEntry>();
    entry->set_keep(order.number);
    const std::shared_ptr<const Replication::Role> role = replication_.role();
    entry->mutable_partitions()->Add(role->partitions.begin(), role->partitions.end());
    ASSIGN_OR_RETURN(const ParameterShard::Kept kept,
                     shard_.KeepBest(MapVersion(request.map_version()), order,
                                     [&] { replication_.Ship(entry); }));
    for (const auto& [partition, weights] : kept) {
      reply->add_partitions(partition);
      reply->add_digests(DigestOf(*weights));
    }
    return replication_.WaitShipped();
  }

  Result<std::shared_ptr<const std::string>> ExportWeights(const ExportRequest& request) const {
    ASSIGN_OR_RETURN(const models::NetworkWeights weights,
                     shard_.Export(MapVersion(request.map_version()), request.partition()));
    return std::make_shared<const std::string>(models::SaveWeights(weights));
  }

  Status TakeOrder(const InstallRequest& request) {
    ASSIGN_OR_RETURN(const PartitionMap map, FromProto(request.map()));
    const size_t partitions = shard_.rules().layout.partitions();
    if (map.primary.size() != partitions) {
      return InvalidArgument(
          fmt::format("a map of {} partitions; the job has {}", map.primary.size(), partitions));
    }
    // A master that gets no answer, or learns of a loss, sends a new order while the first call is
    // still running.
    replication_.Expect(map.version);
    const MutexLock lock(install_mutex_);
    switch (request.phase()) {
      case InstallRequest::FREEZE: {
        Status status = replication_.Freeze(map);
        stands_still_ = status.ok();
        return status;
      }
      case InstallRequest::ADOPT:
      case InstallRequest::CREATE:
        stands_still_ = false;
        return Adopt(map, request);
      case InstallRequest::RELEASE:
        replication_.Release(map);
        return Status();
      default:
        return InvalidArgument("an order that this server does not know");
    }
  }

  Status TakeSnapshot(const SnapshotRequest& request) {
    if (!stands_still_) {
      return FailedPrecondition("a snapshot of a server that serves is no cut");
    }
    return snapshot_.Take({request.partitions().begin(), request.partitions().end()}, shard_);
  }

  Status WriteSnapshot(const WriteRequest& request, WriteReply* reply) {
    ASSIGN_OR_RETURN(const std::vector<CheckpointManifest::File> files,
                     snapshot_.Write(request.directory()));
    for (const CheckpointManifest::File& file : files) {
      ToProto(file, reply->add_files());
    }
    return Status();
  }

  Status CheckNotForgotten() const {
    const int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    return now <= trusted_until_.load()
               ? Status()
               : Unavailable("this parameter server has not heard from its master for too long");
  }

  // Calls of a master that has been succeeded are refused.
  grpc::Status CheckMaster(const grpc::ServerContext& context) {
    grpc::Status allowed = CheckToken(context, key_);
    if (allowed.ok() && !fence_.Admit(TermOf(context.client_metadata()))) {
      return grpc::Status(grpc::StatusCode::ABORTED, "this master has been succeeded by another");
    }
    return allowed;
  }

  Status Adopt(const PartitionMap& map, const InstallRequest& request) {
    if (request.phase() != InstallRequest::CREATE) {
      return replication_.Adopt(map, nullptr, false);
    }
    if (request.restore_from().empty()) {
      return replication_.Adopt(
          map, [this](uint32_t partition) { return replication_.CreateFresh(partition); }, false);
    }
    const auto restore = [&](uint32_t partition) -> Status {
      for (const CheckpointFileProto& file : request.files()) {
        if (file.partition() == partition) {
          ASSIGN_OR_RETURN(
              const std::unique_ptr<ByteSource> bytes,
              CheckpointDirectory::OpenPartition(request.restore_from(), FromProto(file)));
          return shard_.Load(partition, *bytes);
        }
      }
      return Internal(fmt::format("partition {} is not in the checkpoint", partition));
    };
    return replication_.Adopt(map, restore, true);
  }

  // Moves the push out of the message: it is shipped unchanged, without a copy.
  Status Push(const Replication::Role& role, PushProto* proto) {
    auto entry = std::make_shared<ReplicaEntry>();
    entry->mutable_partitions()->Add(role.partitions.begin(), role.partitions.end());
    entry->mutable_push()->Swap(proto);
    UnpackedPush push;
    RETURN_IF_ERROR(Unpack(entry->push(), shard_.rules().layout, role.partitions, &push));
    push.request.map_version = role.map_version;
    return shard_.Push(push.request, [&] { replication_.Ship(entry); });
  }

  const JobKey key_;
  TermFence fence_;
  ParameterShard& shard_;
  Replication replication_;
  // In ticks of the steady clock.
  std::atomic<int64_t> trusted_until_ = std::numeric_limits<int64_t>::max();
  std::atomic<bool> stands_still_ = false;  // between FREEZE and the next order
  Mutex install_mutex_;                     // one order at a time
  ServerSnapshot snapshot_;
};

class Server final : public ParameterServer {
 public:
  Server(Options options, ParameterShard& shard)
      : host_(options.host),
        key_(options.key),
        service_(std::move(options), shard),
        streams_(key_, [this](MessageStream& stream) { service_.Serve(stream); }) {
    Result<std::unique_ptr<RpcServer>> server =
        StartServer(kLimits, host_, key_, &service_,
                    [this](Socket connection) { streams_.Take(std::move(connection)); });
    if (server.ok()) {
      server_ = *std::move(server);
    }
  }
  ~Server() override {
    service_.Close();
    if (server_ != nullptr) {
      server_->Shutdown(kShutdownGrace);
    }
  }
  bool listening() const { return server_ != nullptr; }
  std::string address() const override { return AddressOf(host_, server_->port()); }
  void AnsweredByMaster(std::chrono::steady_clock::time_point asked) override {
    service_.AnsweredByMaster(asked);
  }
  Status health() const override { return service_.health(); }

 private:
  const std::string host_;
  const JobKey key_;
  Service service_;
  StreamServer streams_;
  std::unique_ptr<RpcServer> server_;
};

// Processes of one machine that reach each other through a Unix socket share memory.
Result<std::string> LocalHost(const ParameterServer::Options& options) {
  if (options.key.encrypts() || Listener::KindFor(options.host) == Listener::Kind::kTcp) {
    return options.host;
  }
  ASSIGN_OR_RETURN(const std::string name, MakeJobToken());
  return "unix-abstract:sluice-" + name;
}

}  // namespace

Result<std::unique_ptr<ParameterServer>> ParameterServer::Start(Options options,
                                                                ParameterShard& shard) {
  ASSIGN_OR_RETURN(options.host, LocalHost(options));
  const std::string host = options.host;
  auto server = std::make_unique<Server>(std::move(options), shard);
  if (!server->listening()) {
    return ResourceExhausted(fmt::format("a parameter server cannot listen on {}", host));
  }
  return std::unique_ptr<ParameterServer>(std::move(server));
}

}  // namespace sluice::elastic
