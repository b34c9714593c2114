#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "elastic/master/master_service.h"
#include "elastic/server/parameter_service.h"
#include "tests/elastic/job/small_job.h"

// Include after our own headers: gRPC's macros have the same names as those in base/mutex.h.
#include <grpcpp/generic/generic_stub.h>

#include "elastic/rpc/elastic.grpc.pb.h"
#include "elastic/rpc/wire_internal.h"
#include "elastic/transport/message_stream_internal.h"

// Processes without the job's token, and processes that have it but send nonsense.
namespace sluice::elastic {
namespace {

constexpr char kJobToken[] = "the job's";
constexpr char kParameters[] = "/sluice.elastic.ParameterService/";
constexpr char kMaster[] = "/sluice.elastic.MasterService/";

class StrangerTest : public ::testing::Test {
 protected:
  StrangerTest() : plan_(SmallPlan(1, 8)), network_(models::Network::Make(plan_.model()).value()) {
    shard_ = ParameterShard::Make(plan_.model(), *network_, {4, false, true}, nullptr).value();
    ParameterServer::Options options{"127.0.0.1", kJobToken, ServerId(0), nullptr};
    server_ = ParameterServer::Start(std::move(options), *shard_).value();
    Master::Options master;
    master.queue.shards = 3;
    host_ = std::make_unique<MasterHost>(
        Master(master, TimePoint{}), nullptr, kNoJournalTerm,
        [](const Master::Action&) { return Status(); }, progress_, events_);
    JobEndpoint endpoint("job");
    endpoint.key = kJobToken;
    master_ = MasterServer::Start(endpoint, *host_, [](const MasterServer::ReadyServer&) {
                return true;
              }).value();
    parameters_ = ParameterService::NewStub(OpenChannel(server_->address(), {}));
    control_ = MasterService::NewStub(OpenChannel(master_->address(), {}));
  }

  // A call that sends its headers, but no message before it is answered.
  static grpc::StatusCode WithoutMessage(const std::string& address, const std::string& method,
                                         const std::string& token) {
    grpc::GenericStub stub(OpenChannel(address, {}));
    grpc::ClientContext context;
    context.AddMetadata(kTokenKey, token);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    grpc::Status status;
    int tag = 0;
    call->StartCall(&tag);
    void* got = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&got, &ok));
    call->Finish(&status, &tag);
    EXPECT_TRUE(queue.Next(&got, &ok));
    queue.Shutdown();
    while (queue.Next(&got, &ok)) {
    }
    return status.error_code();
  }

  template <typename Stub, typename Request, typename Reply>
  static grpc::Status Call(Stub& stub,
                           grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                        Reply*),
                           const Request& request) {
    grpc::ClientContext context;
    Prepare(&context, kJobToken);
    Reply reply;
    return (stub.*method)(&context, request, &reply);
  }

  Incarnation Expect() {
    return host_->With([](Master& master, TimePoint now) { return master.Expect("w", now); });
  }

  plan::TrainPlan plan_;
  std::unique_ptr<models::Network> network_;
  std::unique_ptr<ParameterShard> shard_;
  std::unique_ptr<ParameterServer> server_;
  ProgressCallback progress_;
  EventCallback events_;
  std::unique_ptr<MasterHost> host_;
  std::unique_ptr<MasterServer> master_;
  std::unique_ptr<ParameterService::Stub> parameters_;
  std::unique_ptr<MasterService::Stub> control_;
};

// A call without the token is refused before any message is received.
TEST_F(StrangerTest, IsRefusedBeforeThereIsAMessage) {
  for (const char* method : {"Applied", "Keep", "Export", "Install", "Fill", "Snapshot", "Write"}) {
    EXPECT_EQ(WithoutMessage(server_->address(), std::string(kParameters) + method, "another"),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  for (const char* method : {"Map", "Register", "Take", "Report", "Begin", "Fail", "Leave",
                             "Heartbeat", "Regroup", "ReportStep", "Written", "Deliver"}) {
    EXPECT_EQ(WithoutMessage(master_->address(), std::string(kMaster) + method, "another"),
              grpc::StatusCode::PERMISSION_DENIED)
        << method;
  }
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  EXPECT_EQ(MessageStream::Connect(server_->address(), "another", nullptr, soon).status().code(),
            Code::kPermissionDenied);
}

size_t PeakMegabytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoul(line.substr(6)) / 1024;
    }
  }
  return 0;
}

// Three at once, with 300 MB each that are allocated only once here: what may be in flight is
// limited by the connection, not by the sender's wishes.
TEST_F(StrangerTest, WhatHeSendsIsNotTaken) {
  const grpc::Slice piece(std::string(size_t{1} << 20, 'x'));
  const std::vector<grpc::Slice> pieces(300, piece);
  const size_t before = PeakMegabytes();
  ASSERT_GT(before, 0U);
  std::vector<std::jthread> strangers;
  std::atomic<int> refused = 0;
  for (int i = 0; i < 3; ++i) {
    strangers.emplace_back([&] {
      grpc::GenericStub stub(OpenChannel(server_->address(), {}));
      grpc::ClientContext context;
      Prepare(&context, "another");
      grpc::ByteBuffer request(pieces.data(), pieces.size());
      grpc::ByteBuffer reply;
      grpc::Status status;
      grpc::CompletionQueue queue;
      const auto call =
          stub.PrepareUnaryCall(&context, std::string(kParameters) + "Install", request, &queue);
      call->StartCall();
      call->Finish(&reply, &status, &status);
      void* tag = nullptr;
      bool ok = false;
      EXPECT_TRUE(queue.Next(&tag, &ok));
      refused += status.error_code() == grpc::StatusCode::PERMISSION_DENIED ? 1 : 0;
    });
  }
  strangers.clear();
  EXPECT_EQ(refused, 3);
  EXPECT_LT(PeakMegabytes() - before, 100U);
}

TEST_F(StrangerTest, AMessageThatIsNoneIsAnError) {
  grpc::GenericStub stub(OpenChannel(server_->address(), {}));
  grpc::ClientContext context;
  Prepare(&context, kJobToken);
  const grpc::Slice nonsense("\xFF\xFF nonsense");
  const grpc::ByteBuffer request(&nonsense, 1);
  grpc::ByteBuffer reply;
  grpc::Status status;
  grpc::CompletionQueue queue;
  const auto call =
      stub.PrepareUnaryCall(&context, std::string(kParameters) + "Applied", request, &queue);
  call->StartCall();
  call->Finish(&reply, &status, &status);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
}

TEST_F(StrangerTest, AMapThatDoesNotHaveItsOwnServersIsRefused) {
  InstallRequest request;
  request.set_phase(InstallRequest::CREATE);
  PartitionMapProto& map = *request.mutable_map();
  map.set_version(1);
  map.add_servers(0);
  map.add_addresses(server_->address());
  for (int i = 0; i < 4; ++i) {
    map.add_primary(0);
    map.add_backup(7);  // no server has this id
  }
  EXPECT_EQ(Call(*parameters_, &ParameterService::Stub::Install, request).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  for (int i = 0; i < 4; ++i) {
    map.set_backup(i, 0xFFFFFFFF);
  }
  map.add_servers(0);
  map.add_addresses("elsewhere");
  EXPECT_EQ(Call(*parameters_, &ParameterService::Stub::Install, request).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  map.mutable_servers()->RemoveLast();
  map.mutable_addresses()->RemoveLast();
  request.set_phase(static_cast<InstallRequest::Phase>(9));
  EXPECT_EQ(Call(*parameters_, &ParameterService::Stub::Install, request).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  request.set_phase(InstallRequest::CREATE);
  const grpc::Status installed = Call(*parameters_, &ParameterService::Stub::Install, request);
  EXPECT_TRUE(installed.ok()) << installed.error_message();
}

TEST_F(StrangerTest, AJobWithParameterServersDoesNotRegroup) {
  const Incarnation worker = Expect();
  RegroupRequest regroup;
  regroup.set_incarnation(worker.value());
  EXPECT_EQ(Call(*control_, &MasterService::Stub::Regroup, regroup).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  ReportStepRequest step;
  step.set_incarnation(worker.value());
  EXPECT_EQ(Call(*control_, &MasterService::Stub::ReportStep, step).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(StrangerTest, WhomNobodyExpectsIsToldSo) {
  LeaveRequest leave;
  leave.set_incarnation(77);
  BeginRequest begin;
  begin.set_incarnation(77);
  WrittenRequest written;
  written.set_incarnation(77);
  for (const bool over : {false, true}) {
    if (over) {
      host_->With(
          [](Master& master, TimePoint) { master.Abort(Cancelled("the training was cancelled")); });
    }
    EXPECT_EQ(Call(*control_, &MasterService::Stub::Leave, leave).error_code(),
              grpc::StatusCode::ABORTED);
    EXPECT_EQ(Call(*control_, &MasterService::Stub::Begin, begin).error_code(),
              grpc::StatusCode::ABORTED);
    EXPECT_EQ(Call(*control_, &MasterService::Stub::Written, written).error_code(),
              grpc::StatusCode::ABORTED);
  }
}

// A worker has the token, and versions of partitions that this server does not serve: it is told to
// ask for the map, and nothing ends.
TEST_F(StrangerTest, WhoKnowsVersionsOfNoPartitionsIsToldToAskForTheMap) {
  ExchangeRequest request;
  PullProto& pull = *request.mutable_pull();
  pull.set_evaluation(true);
  pull.mutable_known()->assign(32 * sizeof(int64_t), '\0');
  for (size_t t = 0; t < network_->tables().size(); ++t) {
    pull.add_tables();
  }
  const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  MessageStream stream =
      MessageStream::Connect(server_->address(), kJobToken, nullptr, soon).value();
  ExchangeReply reply;
  ASSERT_TRUE(stream.Send(request, soon).ok());
  const Status status = stream.Receive(&reply, soon);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(reply.wrong_owner());
}

TEST_F(StrangerTest, AnErrorWithoutANumberIsStillOne) {
  FailRequest fail;
  fail.set_incarnation(Expect().value());
  fail.set_task(-1);
  fail.mutable_cause()->add_diagnostics()->set_message("what happened");  // code 0: no error
  EXPECT_TRUE(Call(*control_, &MasterService::Stub::Fail, fail).ok());
  EXPECT_EQ(host_->result().code(), Code::kUnknown);
  EXPECT_EQ(host_->result().message(), "what happened");
}

TEST_F(StrangerTest, AReportThatCountsNonsenseIsRefused) {
  const Incarnation worker = Expect();
  const Task task = host_->Take(worker, true, {}, 0)->task;
  ReportRequest report;
  report.set_incarnation(worker.value());
  report.mutable_report()->set_task(task.id.value());
  report.mutable_report()->set_next_batch(1);
  report.mutable_report()->set_rows(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Call(*control_, &MasterService::Stub::Report, report).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  report.mutable_report()->set_rows(8);
  EXPECT_TRUE(Call(*control_, &MasterService::Stub::Report, report).ok());
}

}  // namespace
}  // namespace sluice::elastic
