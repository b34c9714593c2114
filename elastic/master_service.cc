#include "elastic/master_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>

#include "base/mutex.h"
#include "elastic/elastic.grpc.pb.h"
#include "elastic/wire_internal.h"

namespace sluice::elastic {
namespace {

// How long a call for a task, a batch or a newer map may wait in the master: shorter than any
// deadline, long enough to make asking rare.
constexpr double kTakeWaitSeconds = 0.2;
constexpr double kBeginWaitSeconds = 0.2;
// A meeting that leaves a hung member behind opens when somebody asks.
constexpr double kMeetWaitSeconds = 0.1;
constexpr auto kMapWait = std::chrono::milliseconds(200);
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);
// What comes is small, but for weights, and those come in chunks.
constexpr ServerLimits kLimits{.name = "master",
                               .max_request_bytes = 16 * static_cast<int>(kChunkBytes),
                               .max_answer_bytes = kMaxMessageBytes,
                               .memory_bytes = size_t{1} << 30};

class Service final : public MasterService::Service {
 public:
  Service(const MasterSeat& seat, MasterHost& host, MasterServer::Registered registered)
      : token_(seat.token), term_(seat.term), host_(host), registered_(std::move(registered)) {}

  grpc::Status Map(grpc::ServerContext* context, const MapRequest* request,
                   MapReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    MutexLock lock(mutex_);
    const auto until = std::chrono::steady_clock::now() + kMapWait;
    while (map_.version <= request->newer_than()) {
      if (published_.wait_until(lock.native(), until) == std::cv_status::timeout) {
        break;
      }
    }
    ToProto(map_, reply->mutable_map());
    return grpc::Status::OK;
  }

  grpc::Status Register(grpc::ServerContext* context, const RegisterRequest* request,
                        RegisterReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (allowed.ok()) {
      reply->set_given_up(!registered_(request->server(), request->address()));
    }
    return allowed;
  }

  grpc::Status Take(grpc::ServerContext* context, const TakeRequest* request,
                    TakeReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const Result<MasterLink::Answer> answer =
        host_.Take(request->incarnation(), request->waiting(),
                   {request->held().begin(), request->held().end()}, kTakeWaitSeconds);
    if (!answer.ok()) {
      return ToGrpc(answer.status());
    }
    switch (answer->kind) {
      case MasterLink::Answer::Kind::kNothing:
        reply->set_kind(TakeReply::NOTHING);
        break;
      case MasterLink::Answer::Kind::kFinished:
        reply->set_kind(TakeReply::FINISHED);
        break;
      case MasterLink::Answer::Kind::kTask:
        reply->set_kind(TakeReply::TASK);
        ToProto(answer->task, reply->mutable_task());
        break;
    }
    return grpc::Status::OK;
  }

  grpc::Status Report(grpc::ServerContext* context, const ReportRequest* request,
                      ReportReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const Result<Standing> standing = host_.Report(request->incarnation(), FromProto(*request));
    if (standing.ok()) {
      reply->set_mine(standing->mine);
      reply->set_last_batch(standing->last_batch);
    }
    return ToGrpc(standing.status());
  }

  grpc::Status Begin(grpc::ServerContext* context, const BeginRequest* request,
                     BeginReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const Result<bool> may =
        host_.MayBegin(request->incarnation(), request->pushed(), kBeginWaitSeconds);
    if (may.ok()) {
      reply->set_may(*may);
    }
    return ToGrpc(may.status());
  }

  grpc::Status Fail(grpc::ServerContext* context, const FailRequest* request, FailReply*) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    Status cause = FromProto(request->cause());
    if (cause.ok()) {
      cause = Internal("a worker failed and did not say why");
    }
    return ToGrpc(host_.Fail(request->incarnation(), request->task(), cause));
  }

  grpc::Status Leave(grpc::ServerContext* context, const LeaveRequest* request,
                     LeaveReply*) override {
    const grpc::Status allowed = Admit(context);
    if (allowed.ok()) {
      host_.Leave(request->incarnation());
    }
    return allowed;
  }

  grpc::Status Heartbeat(grpc::ServerContext* context, const HeartbeatRequest* request,
                         HeartbeatReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const Result<bool> finished = host_.Heartbeat(request->incarnation());
    if (finished.ok()) {
      reply->set_finished(*finished);
    }
    return ToGrpc(finished.status());
  }

  grpc::Status Meet(grpc::ServerContext* context, const MeetRequest* request,
                    MeetReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    WorldArrival arrival;
    arrival.at.address = request->address();
    arrival.at.closed = request->closed();
    arrival.at.beginning = request->beginning();
    arrival.at.meeting = request->meeting();
    arrival.at.world = request->world();
    arrival.at.failed = request->failed();
    arrival.at.silent = request->silent();
    arrival.position = FromProto(request->position());
    const Result<WorldAnswer> answer =
        host_.Meet(request->incarnation(), arrival, kMeetWaitSeconds);
    if (answer.ok()) {
      ToProto(*answer, reply);
    }
    return ToGrpc(answer.status());
  }

  grpc::Status ReportStep(grpc::ServerContext* context, const ReportStepRequest* request,
                          ReportStepReply* reply) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    const Result<StepAnswer> answer =
        host_.ReportStep(request->incarnation(), request->world(), request->closed(),
                         FromProto(request->position()));
    if (answer.ok()) {
      reply->set_meet(answer->meet);
      reply->set_draft(answer->draft);
    }
    return ToGrpc(answer.status());
  }

  grpc::Status Written(grpc::ServerContext* context, const WrittenRequest* request,
                       WrittenReply*) override {
    const grpc::Status allowed = Admit(context);
    if (allowed.ok()) {
      const Status failed = FromProto(request->failed());
      host_.Written(request->draft(),
                    failed.ok() ? Result<CheckpointManifest::File>(FromProto(request->file()))
                                : Result<CheckpointManifest::File>(failed));
    }
    return allowed;
  }

  grpc::Status Deliver(grpc::ServerContext* context, grpc::ServerReader<DeliverChunk>* reader,
                       DeliverReply*) override {
    const grpc::Status allowed = Admit(context);
    if (!allowed.ok()) {
      return allowed;
    }
    std::string bytes;
    Incarnation worker = 0;
    for (DeliverChunk chunk; reader->Read(&chunk);) {
      worker = chunk.incarnation();
      bytes += chunk.weights();
    }
    // A stream that was cut off does not load.
    Result<models::NetworkWeights> weights = models::LoadWeights(bytes);
    return ToGrpc(weights.ok() ? host_.Deliver(worker, *std::move(weights)) : weights.status());
  }

  void Publish(const PartitionMap& map) {
    const MutexLock lock(mutex_);
    map_ = map;
    published_.notify_all();
  }

 private:
  // A stranger is refused; and a caller that knows of a later master ends this one.
  grpc::Status Admit(grpc::ServerContext* context) {
    const grpc::Status allowed = CheckToken(*context, token_);
    if (!allowed.ok()) {
      return allowed;
    }
    const uint64_t latest = TermOf(context->client_metadata());
    if (latest > term_) {
      const Status succeeded(
          Code::kAborted,
          fmt::format("this master, of term {}, has been succeeded by term {}", term_, latest));
      host_.Abort(succeeded);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, succeeded.message());
    }
    context->AddInitialMetadata(kTermKey, fmt::format("{}", term_));
    return grpc::Status::OK;
  }

  const std::string token_;
  const uint64_t term_;
  MasterHost& host_;
  const MasterServer::Registered registered_;
  Mutex mutex_;
  std::condition_variable published_;
  PartitionMap map_ GUARDED_BY(mutex_);
};

class Server final : public MasterServer {
 public:
  Server(const MasterSeat& seat, MasterHost& master, Registered registered)
      : host_(seat.address), service_(seat, master, std::move(registered)) {
    Result<std::unique_ptr<RpcServer>> server = StartServer(kLimits, host_, &service_);
    if (server.ok()) {
      server_ = *std::move(server);
    }
  }
  ~Server() override {
    if (server_ != nullptr) {
      server_->Shutdown(kShutdownGrace);
    }
  }
  bool listening() const { return server_ != nullptr; }
  std::string address() const override {
    return host_.starts_with("unix") ? host_ : fmt::format("{}:{}", host_, server_->port());
  }
  void Publish(const PartitionMap& map) override { service_.Publish(map); }

 private:
  const std::string host_;
  Service service_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace

Result<std::unique_ptr<MasterServer>> MasterServer::Start(const MasterSeat& seat,
                                                          MasterHost& master,
                                                          Registered registered) {
  auto server = std::make_unique<Server>(seat, master, std::move(registered));
  if (!server->listening()) {
    return ResourceExhausted(fmt::format("the master cannot listen on {}", seat.address));
  }
  return std::unique_ptr<MasterServer>(std::move(server));
}

}  // namespace sluice::elastic
