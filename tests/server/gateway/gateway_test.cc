#include "server/gateway/gateway.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <utility>

#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/gateway_client.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

// Counts for longer than any test waits, but can be interrupted.
constexpr char kEndless[] =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 100000000000) "
    "SELECT count(*) AS n FROM c";

// Tells when the first row has come.
class FirstRowSink final : public executor::ResultSink {
 public:
  Status Header(const Schema&) override { return OkStatus(); }
  Status Rows(const RowBatch&) override {
    if (!std::exchange(told_, true)) {
      first_row_.set_value();
    }
    return OkStatus();
  }
  void Notice(const std::string&) override {}
  void Progress(const elastic::Progress&) override {}
  void Done(const std::string&) override {}
  void WaitForFirstRow() { first_row_.get_future().wait(); }

 private:
  std::promise<void> first_row_;
  bool told_ = false;
};

class GatewayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("sluice_gateway_" + std::to_string(getpid()) + ".db");
    RemoveFiles();
    config_.source = "sqlite:" + path_.string();
    config_.grpc = "127.0.0.1:0";
    config_.user = "ann";
    config_.max_statements = 2;
    Start();
  }
  void TearDown() override {
    gateway_.reset();
    RemoveFiles();
  }
  void Start() {
    auto gateway = Gateway::Start(config_);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(*gateway);
  }
  void RemoveFiles() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix);
    }
  }
  std::unique_ptr<GatewayClient> Connect() {
    auto client = GatewayClient::Connect({gateway_->address(), "", "bob"});
    EXPECT_TRUE(client.ok()) << client.status().ToString();
    return client.ok() ? std::move(*client) : nullptr;
  }
  std::unique_ptr<v1::Gateway::Stub> Stub() {
    return v1::Gateway::NewStub(
        grpc::CreateChannel(gateway_->address(), grpc::InsecureChannelCredentials()));
  }

  std::filesystem::path path_;
  Config config_;
  std::unique_ptr<Gateway> gateway_;
};

TEST_F(GatewayTest, RunsAScriptAndStreamsItsRows) {
  const auto client = Connect();
  RecordingSink sink;
  const Status status = client->Run(
      "CREATE TABLE t(n INTEGER, x REAL, s TEXT); INSERT INTO t VALUES (1, 0.5, 'a'), "
      "(2, NULL, ''), (3, 1e300, NULL); SELECT * FROM t ORDER BY n",
      {}, sink);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(sink.schema.Names(), (std::vector<std::string>{"n", "x", "s"}));
  ASSERT_EQ(sink.rows.size(), 3U);
  EXPECT_EQ(sink.rows[0], (std::vector<Value>{int64_t{1}, 0.5, std::string("a")}));
  EXPECT_EQ(sink.rows[1], (std::vector<Value>{int64_t{2}, Value(), std::string()}));
  EXPECT_EQ(sink.rows[2], (std::vector<Value>{int64_t{3}, 1e300, Value()}));
}

TEST_F(GatewayTest, ErrorsArriveWithTheirPlaceInTheScript) {
  const auto client = Connect();
  RecordingSink sink;
  const std::string script = "SELECT 1;\nSHOW MODEL nothing_here;";
  const Status status = client->Run(script, {}, sink);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.sqlstate(), "42704");
  ASSERT_TRUE(status.diagnostics()[0].span.valid());
  EXPECT_EQ(script.substr(static_cast<size_t>(status.diagnostics()[0].span.begin), 12),
            "nothing_here");
  EXPECT_EQ(sink.rows.size(), 1U) << "the first statement ran";
}

TEST_F(GatewayTest, TypedErrorEndsTheStreamAndIsTheStatusToo) {
  const auto stub = Stub();
  grpc::ClientContext context;
  v1::RunRequest request;
  request.set_script("SELECT * FROM missing_table");
  const auto reader = stub->Run(&context, request);
  v1::RunUpdate update;
  v1::RunUpdate last;
  while (reader->Read(&update)) {
    last = update;
  }
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_NE(status.error_message().find("missing_table"), std::string::npos);
  ASSERT_EQ(last.update_case(), v1::RunUpdate::kError);
  EXPECT_EQ(last.error().diagnostics(0).sqlstate(), "42P01");
}

// gRPC itself would say INTERNAL, without a place.
TEST_F(GatewayTest, AScriptThatIsNotUtf8IsToldWithItsPlace) {
  const auto client = Connect();
  RecordingSink sink;
  const Status status = client->Run("SELECT 1; SELECT 'caf\xE9'", {}, sink);
  EXPECT_EQ(status.sqlstate(), "22021") << status.ToString();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.diagnostics()[0].span.begin, 21);
  EXPECT_TRUE(sink.rows.empty()) << "nothing of it runs";
  const auto stub = Stub();
  grpc::ClientContext context;
  v1::RunRequest request;
  request.set_script("SELECT 1");
  request.set_user("caf\xE9");
  const auto reader = stub->Run(&context, request);
  v1::RunUpdate update;
  while (reader->Read(&update)) {
  }
  const grpc::Status told = reader->Finish();
  EXPECT_EQ(told.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(told.error_message().find("22021"), std::string::npos) << told.error_message();
}

TEST_F(GatewayTest, SettingsOfASessionTravelWithItsScripts) {
  const auto stub = Stub();
  v1::RunRequest request;
  request.set_script("SET sluice.seed = 7");
  grpc::ClientContext context;
  const auto reader = stub->Run(&context, request);
  v1::RunUpdate update;
  std::string setting;
  while (reader->Read(&update)) {
    if (update.update_case() == v1::RunUpdate::kSettingChanged) {
      setting = update.setting_changed();
    }
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(setting, "SET sluice.seed = 7");

  request.set_script("SELECT 1");
  request.add_settings("DROP TABLE t");
  grpc::ClientContext second;
  const auto refused = stub->Run(&second, request);
  while (refused->Read(&update)) {
  }
  EXPECT_EQ(refused->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Two scripts never share a connection: what one leaves open does not affect the other.
// A client has no access to the gateway's files, except in the folder meant for it.
TEST_F(GatewayTest, KeepsCheckpointsOnlyWhereItWasTold) {
  const auto folder = path_.string() + ".checkpoints";
  const auto train = [&] {
    RecordingSink sink;
    return Connect()->Run(
        "CREATE TABLE IF NOT EXISTS t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
        "FROM n WHERE i < 300) SELECT i, i % 2 AS y FROM n; SELECT * FROM t TO TRAIN "
        "LinearClassifier WITH engine.checkpoint_dir='" +
            folder + "/m', train.save_checkpoints_steps=1 LABEL y INTO m",
        {}, sink);
  };
  EXPECT_EQ(train().message(), "this gateway keeps no checkpoints");
  EXPECT_FALSE(std::filesystem::exists(folder));
  gateway_.reset();
  config_.checkpoint_root = folder;
  Start();
  const Status trained = train();
  EXPECT_TRUE(trained.ok()) << trained.ToString();
  EXPECT_TRUE(std::filesystem::exists(folder + "/m"));
  std::filesystem::remove_all(folder);
}

TEST_F(GatewayTest, RunsNoClientsPythonAsRoot) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "this is not root";
  }
  config_.python_models = 1;
  const auto gateway = Gateway::Start(config_);
  ASSERT_FALSE(gateway.ok());
  EXPECT_EQ(gateway.status().message(),
            "--python-models: as root, clients' Python could read every file");
}

TEST_F(GatewayTest, ReadsAndWritesModelsOnlyWhereItWasTold) {
  const auto folder = path_.string() + ".exports";
  const auto run = [&](const std::string& sql) {
    RecordingSink sink;
    return Connect()->Run(sql, {}, sink);
  };
  ASSERT_TRUE(
      run("CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
          "WHERE i < 300) SELECT i % 7 AS a, i % 2 AS y FROM n; "
          "SELECT * FROM t TO TRAIN LinearClassifier LABEL y INTO m")
          .ok());
  const Status refused = run("EXPORT MODEL m TO 'm.sluice'");
  EXPECT_EQ(refused.sqlstate(), "42501");
  EXPECT_EQ(refused.message(), "this gateway has no folder for files of models");
  EXPECT_EQ(run("IMPORT MODEL FROM '/etc/m.sluice'").sqlstate(), "42501");
  gateway_.reset();
  config_.export_root = folder;
  Start();
  const Status exported = run("EXPORT MODEL m TO 'm.sluice'");
  EXPECT_TRUE(exported.ok()) << exported.ToString();
  EXPECT_TRUE(std::filesystem::exists(folder + "/m.sluice"));
  EXPECT_EQ(run("EXPORT MODEL m TO '../m.sluice'").sqlstate(), "42501");
  EXPECT_EQ(run("EXPORT MODEL m TO '" + folder + "/n.sluice'").sqlstate(), "42501");
  const Status imported = run("IMPORT MODEL FROM 'm.sluice' INTO n");
  EXPECT_TRUE(imported.ok()) << imported.ToString();
  EXPECT_TRUE(run("SELECT * FROM t TO PREDICT USING n").ok());
  std::filesystem::remove_all(folder);
}

TEST_F(GatewayTest, AnOpenTransactionEndsWithItsScript) {
  const auto client = Connect();
  RecordingSink sink;
  ASSERT_TRUE(client->Run("CREATE TABLE t(n INTEGER)", {}, sink).ok());
  ASSERT_TRUE(client->Run("BEGIN; INSERT INTO t VALUES (1)", {}, sink).ok());
  RecordingSink rows;
  ASSERT_TRUE(client->Run("SELECT count(*) AS n FROM t", {}, rows).ok());
  EXPECT_EQ(rows.Cell("n"), Value(int64_t{0}));
  const Status written = client->Run("INSERT INTO t VALUES (2)", {}, sink);
  EXPECT_TRUE(written.ok()) << "the lock of the open transaction is gone: " << written.ToString();
}

TEST_F(GatewayTest, CancellingStopsTheStatement) {
  const auto client = Connect();
  std::stop_source stop;
  RecordingSink sink;
  auto done =
      std::async(std::launch::async, [&] { return client->Run(kEndless, stop.get_token(), sink); });
  EXPECT_EQ(done.wait_for(std::chrono::milliseconds(200)), std::future_status::timeout);
  stop.request_stop();
  ASSERT_EQ(done.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_EQ(done.get().code(), Code::kCancelled);
  // The gateway has stopped it, too: its two places are free again within a moment.
  RecordingSink after;
  Status status = ResourceExhausted("");
  for (int i = 0; i < 100 && status.code() == Code::kResourceExhausted; ++i) {
    status = client->Run("SELECT 1; SELECT 1", {}, after);
  }
  EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(GatewayTest, RefusesMoreScriptsThanItsLimitReadably) {
  const auto first = Connect();
  const auto second = Connect();
  const auto third = Connect();
  std::stop_source stop;
  const std::string script = std::string("SELECT 1; ") + kEndless;
  FirstRowSink sink_1;
  FirstRowSink sink_2;
  auto running_1 =
      std::async(std::launch::async, [&] { return first->Run(script, stop.get_token(), sink_1); });
  auto running_2 =
      std::async(std::launch::async, [&] { return second->Run(script, stop.get_token(), sink_2); });
  sink_1.WaitForFirstRow();
  sink_2.WaitForFirstRow();
  RecordingSink sink;
  const Status status = third->Run("SELECT 1; SHOW MODELS", {}, sink);
  EXPECT_EQ(status.code(), Code::kResourceExhausted);
  EXPECT_EQ(status.message(), "the gateway already runs 2 scripts, its limit");
  stop.request_stop();
  EXPECT_EQ(running_1.get().code(), Code::kCancelled);
  EXPECT_EQ(running_2.get().code(), Code::kCancelled);
}

TEST_F(GatewayTest, PlainSqlWaitsItsTurn) {
  const auto fill = [this](FirstRowSink& sink, std::stop_source& stop) {
    auto running = std::async(std::launch::async, [&, client = Connect()] {
      return client->Run(std::string("SELECT 1; ") + kEndless, stop.get_token(), sink);
    });
    sink.WaitForFirstRow();
    return running;
  };
  std::stop_source stop_1;
  std::stop_source stop_2;
  FirstRowSink sink_1;
  FirstRowSink sink_2;
  auto running_1 = fill(sink_1, stop_1);
  auto running_2 = fill(sink_2, stop_2);
  const auto wait = [this](RecordingSink& sink, std::stop_source& stop) {
    return std::async(std::launch::async, [&, client = Connect()] {
      return client->Run("SELECT 41 + 1 AS n; SELECT 43 AS n", stop.get_token(), sink);
    });
  };
  std::stop_source no_stop;
  std::stop_source given_up;
  RecordingSink rows;
  RecordingSink none;
  auto gives_up = wait(none, given_up);
  auto waiting = wait(rows, no_stop);
  // Who gives up does not wait for a place.
  given_up.request_stop();
  EXPECT_EQ(gives_up.get().code(), Code::kCancelled);
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  stop_1.request_stop();
  EXPECT_EQ(running_1.get().code(), Code::kCancelled);
  const Status status = waiting.get();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(rows.rows.size(), 2U);
  EXPECT_EQ(running_2.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  // Scripts that wait when the gateway ends get an error.
  FirstRowSink sink_3;
  auto running_3 = fill(sink_3, no_stop);
  RecordingSink late;
  auto too_late = wait(late, no_stop);
  gateway_->Shutdown();
  EXPECT_FALSE(too_late.get().ok());
}

TEST_F(GatewayTest, ShutdownCancelsWhatRuns) {
  const auto client = Connect();
  FirstRowSink sink;
  const std::string script = std::string("SELECT 1; ") + kEndless;
  auto running = std::async(std::launch::async, [&] { return client->Run(script, {}, sink); });
  sink.WaitForFirstRow();
  gateway_->Shutdown();
  ASSERT_EQ(running.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  EXPECT_FALSE(running.get().ok());
}

TEST_F(GatewayTest, TellsVersionAndJobs) {
  const auto stub = Stub();
  grpc::ClientContext context;
  v1::GetVersionResponse version;
  ASSERT_TRUE(stub->GetVersion(&context, {}, &version).ok());
  EXPECT_NE(version.source().find("sqlite:"), std::string::npos);
  grpc::ClientContext list;
  v1::ListJobsResponse jobs;
  ASSERT_TRUE(stub->ListJobs(&list, {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
  grpc::ClientContext missing;
  v1::GetJobRequest request;
  request.set_id(99);
  v1::GetJobResponse job;
  EXPECT_EQ(stub->GetJob(&missing, request, &job).error_code(), grpc::StatusCode::NOT_FOUND);
}

// Sends one message to a method known only by its path, and returns the bytes of the answer.
std::string CallByPath(const std::string& address, const std::string& path,
                       const std::string& message, grpc::Status* status) {
  grpc::GenericStub stub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice bytes(message);
  const grpc::ByteBuffer request(&bytes, 1);
  const auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  call->Finish(&response, status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  grpc::Slice slice;
  return response.DumpToSingleSlice(&slice).ok() ? std::string(slice.begin(), slice.end()) : "";
}

// gRPC's own health service, as used by kubelet and grpc_health_probe.
TEST_F(GatewayTest, AnswersHealthChecks) {
  grpc::Status status;
  EXPECT_EQ(CallByPath(gateway_->address(), "/grpc.health.v1.Health/Check", "", &status),
            std::string("\x08\x01"))
      << "status: SERVING";
  EXPECT_TRUE(status.ok()) << status.error_message();
}

// It is gRPC's own, which holds a thread for each stranger who asks nothing.
TEST_F(GatewayTest, OffersNoReflection) {
  grpc::Status status;
  CallByPath(gateway_->address(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
             "\x3a\x01*", &status);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

TEST(Gateway, TellsWhyItCannotStart) {
  Config config;
  config.source = "sqlite::memory:";
  EXPECT_EQ(Gateway::Start(config).status().message(),
            "a gateway cannot serve an in-memory database");
  const auto nobody = GatewayClient::Connect({"127.0.0.1:1", "", ""});
  EXPECT_EQ(nobody.status().code(), Code::kUnavailable);
  EXPECT_NE(nobody.status().message().find("127.0.0.1:1"), std::string::npos);
}

}  // namespace
}  // namespace sluice::server
