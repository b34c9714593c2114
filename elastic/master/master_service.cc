#include "elastic/master/master_service.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>

#include "base/mutex.h"
#include "elastic/master/worker_times.h"
#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

// How long a call for a task, a batch or a newer map may wait in the master: shorter than any
// deadline, long enough to make calls rare.
constexpr double kTakeWaitSeconds = 0.2;
constexpr double kBeginWaitSeconds = 0.2;
// A regroup that leaves a hung member behind is decided during a call.
constexpr double kRegroupWaitSeconds = 0.1;
constexpr auto kMapWait = std::chrono::milliseconds(200);
constexpr auto kShutdownGrace = std::chrono::milliseconds(200);
// Messages are small, except for weights, which are sent in chunks.
constexpr ServerLimits kLimits{.name = "master",
                               .max_request_bytes = kMaxMasterMessageBytes,
                               .max_answer_bytes = kMaxMessageBytes,
                               .memory_bytes = size_t{1} << 30};

class Service final : public MasterService::StreamedService {
 public:
  template <typename Request, typename Reply>
  using Call = grpc::ServerUnaryStreamer<Request, Reply>;

  Service(const JobEndpoint& endpoint, MasterHost& host, MasterServer::Registered registered)
      : key_(endpoint.key), term_(endpoint.term), host_(host), registered_(std::move(registered)) {}

  grpc::Status StreamedMap(grpc::ServerContext* context,
                           Call<MapRequest, MapReply>* call) override {
    return Authorized(context, call, [this](const MapRequest* request, MapReply* reply) {
      MutexLock lock(mutex_);
      const auto until = std::chrono::steady_clock::now() + kMapWait;
      while (map_.version <= MapVersion(request->newer_than())) {
        if (published_.wait_until(lock.native(), until) == std::cv_status::timeout) {
          break;
        }
      }
      ToProto(map_, reply->mutable_map());
      return Status();
    });
  }

  grpc::Status StreamedRegister(grpc::ServerContext* context,
                                Call<RegisterRequest, RegisterReply>* call) override {
    return Authorized(context, call, [this](const RegisterRequest* request, RegisterReply* reply) {
      ReportUsed(Role::kParameterServer, request->peak_memory());
      reply->set_given_up(!registered_({request->name(), ServerId(request->server()),
                                        request->address(), request->node(), request->leaving()}));
      return Status();
    });
  }

  grpc::Status StreamedTake(grpc::ServerContext* context,
                            Call<TakeRequest, TakeReply>* call) override {
    return Authorized(context, call, [this](const TakeRequest* request, TakeReply* reply) {
      return TakeTask(*request, reply);
    });
  }

  grpc::Status StreamedReport(grpc::ServerContext* context,
                              Call<ReportRequest, ReportReply>* call) override {
    return Authorized(
        context, call, [this](const ReportRequest* request, ReportReply* reply) -> Status {
          times_.Note(*request);
          const TaskReport report = FromProto(request->report());
          ASSIGN_OR_RETURN(const LeaseStatus lease_status,
                           host_.With([&](Master& master, TimePoint now) {
                             return master.Report(Incarnation(request->incarnation()), report, now);
                           }));
          ToProto(lease_status, reply);
          return Status();
        });
  }

  grpc::Status StreamedBegin(grpc::ServerContext* context,
                             Call<BeginRequest, BeginReply>* call) override {
    return Authorized(
        context, call, [this](const BeginRequest* request, BeginReply* reply) -> Status {
          ASSIGN_OR_RETURN(const bool may, host_.MayBegin(Incarnation(request->incarnation()),
                                                          request->pushed(), kBeginWaitSeconds));
          reply->set_may(may);
          return Status();
        });
  }

  grpc::Status StreamedFail(grpc::ServerContext* context,
                            Call<FailRequest, FailReply>* call) override {
    return Authorized(context, call, [this](const FailRequest* request, FailReply*) {
      Status cause = FromProto(request->cause());
      if (cause.ok()) {
        cause = Internal("a worker failed and gave no reason");
      }
      return host_.With([&](Master& master, TimePoint now) {
        return master.Fail(Incarnation(request->incarnation()), TaskId(request->task()), cause,
                           now);
      });
    });
  }

  grpc::Status StreamedLeave(grpc::ServerContext* context,
                             Call<LeaveRequest, LeaveReply>* call) override {
    return Authorized(context, call, [this](const LeaveRequest* request, LeaveReply*) {
      return host_.With([&](Master& master, TimePoint now) {
        return master.Leave(Incarnation(request->incarnation()), now);
      });
    });
  }

  grpc::Status StreamedHeartbeat(grpc::ServerContext* context,
                                 Call<HeartbeatRequest, HeartbeatReply>* call) override {
    return Authorized(context, call,
                      [this](const HeartbeatRequest* request, HeartbeatReply* reply) -> Status {
                        ASSIGN_OR_RETURN(const bool finished,
                                         host_.Heartbeat(Incarnation(request->incarnation())));
                        Tell(*request, kDatabaseWaits, request->waits_for());
                        Tell(*request, kRowsReadAgain, request->rows_read_again());
                        reply->set_finished(finished);
                        ReportHeldSnapshot(*request);
                        ReportUsed(Role::kWorker, request->peak_memory());
                        return Status();
                      });
  }

  grpc::Status StreamedRegroup(grpc::ServerContext* context,
                               Call<RegroupRequest, RegroupReply>* call) override {
    return Authorized(context, call, [this](const RegroupRequest* request, RegroupReply* reply) {
      return RegroupWorld(*request, reply);
    });
  }

  grpc::Status StreamedReportStep(grpc::ServerContext* context,
                                  Call<ReportStepRequest, ReportStepReply>* call) override {
    return Authorized(
        context, call, [this](const ReportStepRequest* request, ReportStepReply* reply) -> Status {
          times_.Note(*request);
          const RoundPosition position = FromProto(request->position());
          ASSIGN_OR_RETURN(const StepAnswer answer, host_.With([&](Master& master, TimePoint now) {
            return master.ReportStep(Incarnation(request->incarnation()), WorldId(request->world()),
                                     request->closed(), position, now);
          }));
          reply->set_meet(answer.regroup);
          reply->set_draft(answer.draft);
          return Status();
        });
  }

  grpc::Status StreamedWritten(grpc::ServerContext* context,
                               Call<WrittenRequest, WrittenReply>* call) override {
    return Authorized(context, call, [this](const WrittenRequest* request, WrittenReply*) {
      const Status failed = FromProto(request->failed());
      const Result<CheckpointManifest::File> file =
          failed.ok() ? Result<CheckpointManifest::File>(FromProto(request->file()))
                      : Result<CheckpointManifest::File>(failed);
      return host_.With([&](Master& master, TimePoint now) {
        return master.Written(Incarnation(request->incarnation()), request->draft(), file, now);
      });
    });
  }

  grpc::Status Deliver(grpc::ServerContext* context, grpc::ServerReader<DeliverChunk>* reader,
                       DeliverReply*) override {
    const grpc::Status allowed = Admit(context);
    return allowed.ok() ? ToGrpc(Guarded("delivering weights", [&] { return Deliver(reader); }))
                        : allowed;
  }

  grpc::Status StreamedBase(grpc::ServerContext* context,
                            grpc::ServerSplitStreamer<BaseRequest, BaseChunk>* call) override {
    return Authorized(context, call, [this](const BaseRequest&) { return OfferedBase(); });
  }

  grpc::Status StreamedPass(grpc::ServerContext* context,
                            grpc::ServerSplitStreamer<PassRequest, BaseChunk>* call) override {
    return Authorized(
        context, call,
        [this](const PassRequest& request) -> Result<std::shared_ptr<const std::string>> {
          const MutexLock lock(mutex_);
          if (pass_epoch_ != Epoch(request.epoch())) {
            return NotFound(fmt::format("epoch {} is not under way", request.epoch()));
          }
          return std::make_shared<const std::string>(request.whole() ? pass_.whole() : pass_.step);
        });
  }

  grpc::Status StreamedConfigure(
      grpc::ServerContext* context,
      grpc::ServerSplitStreamer<ConfigureRequest, BaseChunk>* call) override {
    return Authorized(
        context, call,
        [this](const ConfigureRequest& request) -> Result<std::shared_ptr<const std::string>> {
          const MutexLock lock(mutex_);
          const auto& config = request.server() ? server_config_ : worker_config_;
          if (config == nullptr) {
            return Unavailable("the master has not begun yet");
          }
          return config;
        });
  }

  void OfferConfigs(std::shared_ptr<const std::string> of_workers,
                    std::shared_ptr<const std::string> of_servers) {
    const MutexLock lock(mutex_);
    worker_config_ = std::move(of_workers);
    server_config_ = std::move(of_servers);
  }

  void HearHeld(MasterServer::Held held) {
    const MutexLock lock(mutex_);
    held_ = std::move(held);
  }

  void HearUsed(MasterServer::Used used) {
    const MutexLock lock(mutex_);
    used_ = std::move(used);
  }

  void OfferPass(Epoch epoch, models::Pass pass) {
    const MutexLock lock(mutex_);
    pass_epoch_ = epoch;
    pass_ = std::move(pass);
  }

  void OfferBase(std::shared_ptr<const std::string> weights) {
    const MutexLock lock(mutex_);
    base_ = std::move(weights);
  }

  Profile workers_profile() const { return times_.Sum(); }

  void Publish(const PartitionMap& map) {
    const MutexLock lock(mutex_);
    map_ = map;
    published_.notify_all();
  }

 private:
  template <typename AnyCall, typename Handle>
  grpc::Status Authorized(grpc::ServerContext* context, AnyCall* call, const Handle& handle) {
    const grpc::Status allowed = Admit(context);
    return allowed.ok() ? AnswerCall(call, handle) : allowed;
  }

  void Tell(const HeartbeatRequest& request, const char* kind, const std::string& what) {
    if (!what.empty()) {
      host_.With([&](Master& master, TimePoint) {
        master.Tell(Incarnation(request.incarnation()), kind, what);
      });
    }
  }

  void ReportHeldSnapshot(const HeartbeatRequest& request) {
    MasterServer::Held held;
    {
      const MutexLock lock(mutex_);
      held = held_;
    }
    if (held && !request.snapshot().empty()) {
      held(request.node(), request.snapshot(), request.validation_snapshot());
    }
  }

  void ReportUsed(Role role, int64_t peak_bytes) {
    MasterServer::Used used;
    {
      const MutexLock lock(mutex_);
      used = used_;
    }
    if (used && peak_bytes > 0) {  // 0: of an earlier version
      used(role, peak_bytes);
    }
  }

  Status TakeTask(const TakeRequest& request, TakeReply* reply) {
    times_.Note(request);
    ASSIGN_OR_RETURN(const MasterLink::Answer answer,
                     host_.Take(Incarnation(request.incarnation()), request.waiting(),
                                HeldTasksOf(request), kTakeWaitSeconds));
    ToProto(answer, reply);
    return Status();
  }

  Status RegroupWorld(const RegroupRequest& request, RegroupReply* reply) {
    times_.Note(request);
    ASSIGN_OR_RETURN(
        const WorldAnswer answer,
        host_.Regroup(Incarnation(request.incarnation()), FromProto(request), kRegroupWaitSeconds));
    ToProto(answer, reply);
    return Status();
  }

  Result<std::shared_ptr<const std::string>> OfferedBase() {
    const MutexLock lock(mutex_);
    if (base_ == nullptr) {
      return NotFound("all processes that need the weights to continue from have them");
    }
    return base_;
  }

  Status Deliver(grpc::ServerReader<DeliverChunk>* reader) {
    Incarnation worker = kNoIncarnation;
    ASSIGN_OR_RETURN(
        models::NetworkWeights weights,
        ReadDelivery([reader](DeliverChunk* chunk) { return reader->Read(chunk); }, &worker));
    return host_.With(
        [&](Master& master, TimePoint) { return master.Deliver(worker, std::move(weights)); });
  }

  // Refuses strangers; a caller that knows of a later master ends this one.
  grpc::Status Admit(grpc::ServerContext* context) {
    grpc::Status allowed = CheckToken(*context, key_);
    if (!allowed.ok()) {
      return allowed;
    }
    const Term latest = TermOf(context->client_metadata());
    if (latest > term_) {
      const Status succeeded(
          Code::kAborted,
          fmt::format("this master, of term {}, has been succeeded by term {}", term_, latest));
      host_.With([&](Master& master, TimePoint) { master.Abort(succeeded); });
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, succeeded.message());
    }
    context->AddInitialMetadata(kTermKey, fmt::format("{}", term_));
    return grpc::Status::OK;
  }

  const JobKey key_;
  const Term term_;
  MasterHost& host_;
  const MasterServer::Registered registered_;
  Mutex mutex_;
  std::condition_variable published_;
  PartitionMap map_ GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> base_ GUARDED_BY(mutex_);
  Epoch pass_epoch_ GUARDED_BY(mutex_) = kNoEpoch;
  models::Pass pass_ GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> worker_config_ GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> server_config_ GUARDED_BY(mutex_);
  MasterServer::Held held_ GUARDED_BY(mutex_);
  MasterServer::Used used_ GUARDED_BY(mutex_);
  WorkerTimes times_;
};

class Server final : public MasterServer {
 public:
  Server(const JobEndpoint& endpoint, MasterHost& master, Registered registered)
      : host_(endpoint.address),
        found_at_(endpoint.found_at),
        service_(endpoint, master, std::move(registered)) {
    Result<std::unique_ptr<RpcServer>> server =
        StartServer(kLimits, host_, endpoint.key, &service_);
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
    return !found_at_.empty() ? found_at_ : AddressOf(host_, server_->port());
  }
  void Publish(const PartitionMap& map) override { service_.Publish(map); }
  void OfferPass(Epoch epoch, models::Pass pass) override {
    service_.OfferPass(epoch, std::move(pass));
  }
  void OfferBase(std::shared_ptr<const std::string> weights) override {
    service_.OfferBase(std::move(weights));
  }
  void OfferConfigs(std::shared_ptr<const std::string> of_workers,
                    std::shared_ptr<const std::string> of_servers) override {
    service_.OfferConfigs(std::move(of_workers), std::move(of_servers));
  }
  void HearHeld(Held held) override { service_.HearHeld(std::move(held)); }
  void HearUsed(Used used) override { service_.HearUsed(std::move(used)); }
  Profile workers_profile() const override { return service_.workers_profile(); }

 private:
  const std::string host_, found_at_;
  Service service_;
  std::unique_ptr<RpcServer> server_;
};

}  // namespace

Result<std::unique_ptr<MasterServer>> MasterServer::Start(const JobEndpoint& endpoint,
                                                          MasterHost& master,
                                                          Registered registered) {
  auto server = std::make_unique<Server>(endpoint, master, std::move(registered));
  if (!server->listening()) {
    return ResourceExhausted(fmt::format("the master cannot listen on {}", endpoint.address));
  }
  return std::unique_ptr<MasterServer>(std::move(server));
}

}  // namespace sluice::elastic
