// First: gRPC defines macros with the names of ours.
#include "elastic/rpc/grpc_links.h"

#include "base/log.h"
#include "base/machine.h"
#include "elastic/parameters/partition.h"
#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/wire_internal.h"

namespace sluice::elastic {
namespace {

class Remote final : public RemoteMaster {
 public:
  Remote(const std::string& address, const JobKey& key, Incarnation worker, std::stop_token stop)
      : token_(key.token),
        worker_(worker),
        stop_(std::move(stop)),
        stub_(MasterService::NewStub(OpenChannel(address, key))) {}

  void ReportTime(PhaseClock* clock) override { clock_ = clock; }

  Result<Answer> Take(bool waiting) override {
    TakeRequest request;
    request.set_incarnation(worker_.value());
    AddTime(&request);
    const PhaseScope exchanging(clock_, Phase::kExchange);
    request.set_waiting(waiting);
    for (const TaskId task : held_.ids()) {
      request.add_held(task.value());
    }
    TakeReply reply;
    RETURN_IF_ERROR(
        Call([&](grpc::ClientContext* context) { return stub_->Take(context, request, &reply); }));
    const Answer answer = FromProto(reply);
    held_.Took(answer);
    return answer;
  }

  Result<LeaseStatus> Report(const TaskReport& report) override {
    ReportRequest request;
    ToProto(report, request.mutable_report());
    request.set_incarnation(worker_.value());
    AddTime(&request);
    const PhaseScope exchanging(clock_, Phase::kExchange);
    ReportReply reply;
    RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return stub_->Report(context, request, &reply); }));
    const LeaseStatus lease_status = FromProto(reply);
    held_.Reported(report, lease_status);
    return lease_status;
  }

  Result<bool> MayBegin(int64_t pushed) override {
    const PhaseScope exchanging(clock_, Phase::kExchange);
    BeginRequest request;
    request.set_incarnation(worker_.value());
    request.set_pushed(pushed);
    BeginReply reply;
    RETURN_IF_ERROR(
        Call([&](grpc::ClientContext* context) { return stub_->Begin(context, request, &reply); }));
    return reply.may();
  }

  Status Fail(const Task& task, const Status& cause) override {
    FailRequest request;
    request.set_incarnation(worker_.value());
    request.set_task(task.id.value());
    ToProto(cause, request.mutable_cause());
    FailReply reply;
    held_.Drop(task.id);
    return Call(
        [&](grpc::ClientContext* context) { return stub_->Fail(context, request, &reply); });
  }

  void Abandon(TaskId task) override { held_.Drop(task); }

  void Leave() override {
    // Once: a leaving process has little time, and the master detects its end anyway.
    grpc::ClientContext context;
    Prepare(&context, token_);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(500));
    LeaveRequest request;
    request.set_incarnation(worker_.value());
    LeaveReply reply;
    const grpc::Status status = stub_->Leave(&context, request, &reply);
    if (!status.ok()) {
      log::Debug("leaving without a word: {}", status.error_message());
    }
  }

  Result<PartitionMap> Map(MapVersion newer_than) override {
    MapRequest request;
    request.set_newer_than(newer_than.value());
    MapReply reply;
    RETURN_IF_ERROR(
        Call([&](grpc::ClientContext* context) { return stub_->Map(context, request, &reply); }));
    return FromProto(reply.map());
  }

  Result<bool> Heartbeat(const HeartbeatReport& report) override {
    HeartbeatRequest request;
    request.set_incarnation(worker_.value());
    request.set_waits_for(report.waits_for);
    request.set_rows_read_again(report.rows_read_again);
    request.set_snapshot(report.snapshot);
    request.set_validation_snapshot(report.validation_snapshot);
    request.set_node(report.node);
    request.set_peak_memory(PeakMemory());
    HeartbeatReply reply;
    RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return stub_->Heartbeat(context, request, &reply); }));
    return reply.finished();
  }

  Result<WorldAnswer> Regroup(const WorldArrival& arrival) override {
    RegroupRequest request;
    request.set_incarnation(worker_.value());
    ToProto(arrival, &request);
    AddTime(&request);
    const PhaseScope exchanging(clock_, Phase::kExchange);
    RegroupReply reply;
    RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return stub_->Regroup(context, request, &reply); }));
    return FromProto(reply);
  }

  Result<StepAnswer> ReportStep(WorldId world, int64_t closed,
                                const RoundPosition& position) override {
    ReportStepRequest request;
    request.set_incarnation(worker_.value());
    request.set_world(world.value());
    request.set_closed(closed);
    ToProto(position, request.mutable_position());
    AddTime(&request);
    const PhaseScope exchanging(clock_, Phase::kExchange);
    ReportStepReply reply;
    RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return stub_->ReportStep(context, request, &reply); }));
    return StepAnswer{reply.meet(), reply.draft()};
  }

  Status Written(const std::string& draft, const Result<CheckpointManifest::File>& file) override {
    WrittenRequest request;
    request.set_incarnation(worker_.value());
    request.set_draft(draft);
    if (file.ok()) {
      ToProto(*file, request.mutable_file());
    } else {
      ToProto(file.status(), request.mutable_failed());
    }
    WrittenReply reply;
    return Call(
        [&](grpc::ClientContext* context) { return stub_->Written(context, request, &reply); });
  }

  Status Deliver(const models::NetworkWeights& weights) override {
    const std::string bytes = models::SaveWeights(weights);
    const std::string digest = DigestOf(weights);
    return Call([&](grpc::ClientContext* context) {
      context->set_deadline(std::chrono::system_clock::now() + kBulkDeadline);
      DeliverReply reply;
      DeliverChunk chunk;
      chunk.set_incarnation(worker_.value());
      const auto writer = stub_->Deliver(context, &reply);
      for (size_t begin = 0; begin < bytes.size(); begin += kChunkBytes) {
        chunk.set_weights(bytes.substr(begin, kChunkBytes));
        if (begin + kChunkBytes >= bytes.size()) {
          chunk.set_digest(digest);
        }
        if (!writer->Write(chunk)) {
          break;
        }
      }
      writer->WritesDone();
      return writer->Finish();
    });
  }

  Result<models::NetworkWeights> Base(uint64_t bytes) override {
    ASSIGN_OR_RETURN(const std::string weights, BaseBytes(bytes));
    return models::LoadWeights(weights);
  }

  Result<std::string> BaseBytes(uint64_t bytes) override {
    return Receive(bytes, [this](grpc::ClientContext* context) {
      return stub_->Base(context, BaseRequest());
    });
  }

  Result<std::string> Pass(Epoch epoch, bool whole) override {
    PassRequest request;
    request.set_whole(whole);
    request.set_epoch(epoch.value());
    return Receive(
        0, [this, request](grpc::ClientContext* context) { return stub_->Pass(context, request); });
  }

  Result<std::string> Configure(bool server) override {
    ConfigureRequest request;
    request.set_server(server);
    return Receive(0, [this, request](grpc::ClientContext* context) {
      return stub_->Configure(context, request);
    });
  }

  Result<bool> Register(const std::string& name, ServerId server, const std::string& address,
                        const std::string& node, bool leaving) override {
    RegisterRequest request;
    request.set_leaving(leaving);
    request.set_peak_memory(PeakMemory());
    request.set_node(node);
    request.set_name(name);
    request.set_server(server.value());
    request.set_address(address);
    RegisterReply reply;
    RETURN_IF_ERROR(Call(
        [&](grpc::ClientContext* context) { return stub_->Register(context, request, &reply); }));
    return !reply.given_up();
  }

 private:
  template <typename Request>
  void AddTime(Request* request) const {
    if (clock_ == nullptr) {
      return;
    }
    const Profile spent = clock_->Read();
    for (size_t i = 0; i < kPhases; ++i) {
      request->add_seconds(spent.Seconds(Profile::At(i)));
    }
  }

  // All pieces of an answer.
  Result<std::string> Receive(
      uint64_t bytes,
      const std::function<std::unique_ptr<grpc::ClientReader<BaseChunk>>(grpc::ClientContext*)>&
          ask) {
    std::string all;
    RETURN_IF_ERROR(Call([&](grpc::ClientContext* context) {
      context->set_deadline(std::chrono::system_clock::now() + kBulkDeadline);
      all.clear();
      all.reserve(bytes);
      const auto reader = ask(context);
      for (BaseChunk chunk; reader->Read(&chunk);) {
        all += chunk.weights();
      }
      return reader->Finish();
    }));
    return all;
  }

  Status Call(const std::function<grpc::Status(grpc::ClientContext*)>& call) {
    return CallWithRetry(token_, "the master", stop_, call, &fence_);
  }

  const std::string token_;
  const Incarnation worker_;
  const std::stop_token stop_;
  const std::unique_ptr<MasterService::Stub> stub_;
  TermFence fence_;
  HeldTasks held_;
  PhaseClock* clock_ = nullptr;  // used by the worker's thread only
};

}  // namespace

std::unique_ptr<RemoteMaster> RemoteMaster::Connect(const std::string& address, const JobKey& key,
                                                    Incarnation worker, std::stop_token stop) {
  return std::make_unique<Remote>(address, key, worker, std::move(stop));
}

}  // namespace sluice::elastic
