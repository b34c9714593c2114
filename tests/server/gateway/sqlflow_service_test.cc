#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "server/gateway/gateway.h"
#include "server/gateway/sqlflow.grpc.pb.h"

namespace sluice::server {
namespace {

class SqlflowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = std::filesystem::temp_directory_path() /
            ("sluice_sqlflow_" + std::to_string(getpid()) + ".db");
    RemoveFiles();
    Config config;
    config.source = "sqlite:" + path_.string();
    config.grpc = "127.0.0.1:0";
    auto gateway = Gateway::Start(config);
    ASSERT_TRUE(gateway.ok()) << gateway.status().ToString();
    gateway_ = std::move(*gateway);
    channel_ = grpc::CreateChannel(gateway_->address(), grpc::InsecureChannelCredentials());
  }
  void TearDown() override {
    gateway_.reset();
    RemoveFiles();
  }
  void RemoveFiles() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + suffix);
    }
  }

  struct Answer {
    std::vector<proto::Response> responses;
    grpc::Status status;
    // "head row row eoe": the kinds in their order.
    std::string Kinds() const {
      std::string kinds;
      for (const proto::Response& response : responses) {
        static const char* const kNames[] = {"nothing", "head", "row", "message", "eoe", "job"};
        kinds += (kinds.empty() ? "" : " ") + std::string(kNames[response.response_case()]);
      }
      return kinds;
    }
  };
  Answer Run(const std::string& statements, const std::string& source = "") {
    proto::Request request;
    request.set_stmts(statements);
    request.mutable_session()->set_db_conn_str(source);
    request.mutable_session()->set_user_id("ann");
    grpc::ClientContext context;
    const auto reader = proto::SQLFlow::NewStub(channel_)->Run(&context, request);
    Answer answer;
    for (proto::Response response; reader->Read(&response);) {
      answer.responses.push_back(response);
    }
    answer.status = reader->Finish();
    return answer;
  }

  std::filesystem::path path_;
  std::unique_ptr<Gateway> gateway_;
  std::shared_ptr<grpc::Channel> channel_;
};

// gRPC itself would say INTERNAL, without a place.
TEST_F(SqlflowTest, AScriptThatIsNotUtf8IsToldWithItsPlace) {
  const Answer answer = Run("SELECT 1;\nSELECT 'caf\xE9'");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_NE(answer.status.error_message().find("22021"), std::string::npos)
      << answer.status.error_message();
  EXPECT_NE(answer.status.error_message().find("LINE 2:12"), std::string::npos)
      << answer.status.error_message();
  EXPECT_TRUE(answer.responses.empty()) << "nothing of it runs";
}

// J1, J3, J4: head, rows of Any, an eoe after every statement with seconds.
TEST_F(SqlflowTest, SelectAnswersHeadRowsEndOfExecution) {
  const Answer answer = Run("SELECT 7 AS n, 0.5 AS x, 'a' AS s, NULL AS none, x'00ff' AS b;");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.Kinds(), "head row eoe");
  EXPECT_EQ(answer.responses[0].head().column_names_size(), 5);
  EXPECT_EQ(answer.responses[0].head().column_names(0), "n");
  const proto::Row& row = answer.responses[1].row();
  EXPECT_EQ(row.data(0).type_url(), "type.googleapis.com/google.protobuf.Int64Value");
  EXPECT_EQ(row.data(1).type_url(), "type.googleapis.com/google.protobuf.DoubleValue");
  EXPECT_EQ(row.data(2).type_url(), "type.googleapis.com/google.protobuf.StringValue");
  EXPECT_EQ(row.data(3).type_url(), "type.googleapis.com/proto.Row.Null");
  EXPECT_EQ(row.data(4).type_url(), "type.googleapis.com/google.protobuf.BytesValue");
  google::protobuf::Int64Value number;
  ASSERT_TRUE(row.data(0).UnpackTo(&number));
  EXPECT_EQ(number.value(), 7);
  const proto::EndOfExecution& end = answer.responses[2].eoe();
  EXPECT_EQ(end.sql().substr(0, 11), "SELECT 7 AS");
  EXPECT_GE(end.spent_time_seconds(), 0);
  EXPECT_LT(end.spent_time_seconds(), 60) << "seconds, not nanoseconds";
}

// J28 and I5: a notebook cell of several statements, the last one without ';'.
TEST_F(SqlflowTest, EveryStatementHasItsEnd) {
  const Answer answer =
      Run("CREATE TABLE t(n INTEGER); INSERT INTO t VALUES (1), (2);\n"
          "SELECT * FROM t WHERE n > 5; DELETE FROM t WHERE n = 1; SELECT n FROM t");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  ASSERT_EQ(answer.Kinds(), "message eoe message eoe head eoe message eoe head row eoe");
  EXPECT_EQ(answer.responses[0].message().message(), "OK");
  EXPECT_EQ(answer.responses[2].message().message(), "2 rows affected");
  EXPECT_EQ(answer.responses[6].message().message(), "1 row affected");
}

// Errors are UNKNOWN with the text for people.
TEST_F(SqlflowTest, ErrorsAreUnknownWithTheRenderedText) {
  const Answer answer = Run("SELECT 1; SHOW TRAIN missing_model;");
  EXPECT_EQ(answer.Kinds(), "head row eoe");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_NE(answer.status.error_message().find("missing_model"), std::string::npos);
  EXPECT_NE(answer.status.error_message().find("LINE 1:"), std::string::npos);
}

// J11: another data source than the gateway's.
TEST_F(SqlflowTest, AnotherDataSourceIsRefusedWithoutItsPassword) {
  const Answer answer = Run("SELECT 1;", "mysql://root:secret@tcp(127.0.0.1:3306)/?maxAllowed=0");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_NE(answer.status.error_message().find("create DB failed: "), std::string::npos);
  EXPECT_EQ(answer.status.error_message().find("secret"), std::string::npos);
  EXPECT_EQ(Run("SELECT 1;", "sqlite:" + path_.string()).Kinds(), "head row eoe");
}

// A training: messages, then the result row that every door shows, then its end; its job through
// Fetch.
TEST_F(SqlflowTest, TrainAnswersMessagesAndARowAndItsJobIsFetched) {
  const Answer answer = Run(
      "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
      "400) SELECT (i * 37) % 101 AS a, CASE WHEN (i * 37) % 101 > 50 THEN 1 ELSE 0 END AS y FROM "
      "n; SELECT * FROM t TO TRAIN LinearClassifier WITH train.epoch=3 LABEL y INTO m;");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const std::string kinds = answer.Kinds();
  EXPECT_TRUE(kinds.starts_with("message eoe message")) << kinds;
  EXPECT_TRUE(kinds.ends_with("message head row eoe")) << kinds;
  const proto::Response& evaluation = answer.responses[answer.responses.size() - 4];
  EXPECT_TRUE(evaluation.message().message().starts_with("Evaluation result: model: m"));

  proto::FetchRequest request;
  request.mutable_job()->set_id("1");
  proto::FetchResponse response;
  grpc::ClientContext first;
  ASSERT_TRUE(proto::SQLFlow::NewStub(channel_)->Fetch(&first, request, &response).ok());
  EXPECT_TRUE(response.eof());
  const auto& fetched = response.responses().response();
  ASSERT_GE(fetched.size(), 2) << "events, then the end";
  EXPECT_TRUE(fetched[0].has_message());
  ASSERT_TRUE(fetched[fetched.size() - 1].has_eoe());
  EXPECT_NE(fetched[fetched.size() - 1].eoe().sql().find("TO TRAIN"), std::string::npos);
  // The client sends back what it got, and receives nothing twice.
  const int seen = fetched.size();
  grpc::ClientContext second;
  const proto::FetchRequest again = response.updated_fetch_since();
  EXPECT_EQ(again.job().id(), "1");
  ASSERT_TRUE(proto::SQLFlow::NewStub(channel_)->Fetch(&second, again, &response).ok());
  EXPECT_TRUE(response.eof());
  EXPECT_EQ(response.responses().response_size(), 1) << "of " << seen;
}

TEST_F(SqlflowTest, FetchOfAnUnknownJobIsToldReadably) {
  proto::FetchRequest request;
  request.mutable_job()->set_id("steps-42");
  proto::FetchResponse response;
  grpc::ClientContext context;
  const grpc::Status status =
      proto::SQLFlow::NewStub(channel_)->Fetch(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNKNOWN);
  EXPECT_NE(status.error_message().find("no job 'steps-42'"), std::string::npos);
}

// A client generated from SQLFlow's own sources knows only this path.
TEST_F(SqlflowTest, ListensOnSqlflowsMethodPath) {
  grpc::GenericStub stub(channel_);
  proto::FetchRequest request;
  request.mutable_job()->set_id("1");
  const std::string bytes = request.SerializeAsString();
  const grpc::Slice slice(bytes);
  const grpc::ByteBuffer buffer(&slice, 1);
  for (const auto& [path, code] :
       {std::pair{"/proto.SQLFlow/Fetch", grpc::StatusCode::UNKNOWN},
        std::pair{"/proto.SQLFlow/Nothing", grpc::StatusCode::UNIMPLEMENTED}}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, path, buffer, &queue);
    call->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    call->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), code) << path << ": " << status.error_message();
  }
}

}  // namespace
}  // namespace sluice::server
