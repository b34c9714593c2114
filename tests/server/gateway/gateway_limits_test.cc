// Limits of memory, descriptors and places that unknown clients can use in a gateway.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "server/gateway/gateway.pb.h"
#include "server/gateway/sqlflow.pb.h"
#include "tests/server/gateway/raw_http2.h"
#include "tests/server/gateway/running_gateway.h"
#include "tests/server/sluice_process.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

using ::testing::HasSubstr;

using GatewayLimits = RunningGateway;

// A RunRequest with a script of this many bytes, compressed without ever being whole in memory.
std::string GzippedRequest(size_t script_bytes) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  std::string packed;
  const auto add = [&](std::string_view bytes, int flush) {
    char out[4096];
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(out);
      stream.avail_out = sizeof out;
      deflate(&stream, flush);
      packed.append(out, sizeof out - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  std::string head = "\x0a";  // field 1, a text
  for (size_t rest = script_bytes; rest > 0; rest >>= 7U) {
    head += static_cast<char>((rest & 0x7FU) | (rest > 0x7F ? 0x80U : 0U));
  }
  head += "SELECT 1";
  add(head, Z_NO_FLUSH);
  const std::string blanks(1 << 16, ' ');
  for (size_t left = script_bytes - 8; left > 0; left -= std::min(left, blanks.size())) {
    add(std::string_view(blanks).substr(0, left), Z_NO_FLUSH);
  }
  add("", Z_FINISH);
  deflateEnd(&stream);
  return packed;
}

int64_t PeakMemoryKb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST_F(GatewayLimits, CompressedMessagesAreRefusedAsTheyCome) {
  Start();
  const std::string large = GzippedRequest(48 << 20);
  ASSERT_LT(large.size(), 60'000U) << "no window of HTTP/2 has to open for it";
  const int64_t before = PeakMemoryKb();
  for (const char* encoding : {"gzip", "deflate", "identity", "", "brotli"}) {
    for (const std::string& message : {large, GzippedRequest(8)}) {
      const RawConnection connection(gateway_->address());
      std::vector<std::pair<std::string, std::string>> headers;
      if (*encoding != '\0') {
        headers.emplace_back("grpc-encoding", encoding);
      }
      connection.Send(std::string(kHttp2Preface) + Http2Settings() +
                      Http2Call("/sluice.v1.Gateway/Run", headers) + Http2Message(1, message));
      const std::string answer = connection.Receive("grpc-status", 10);
      EXPECT_THAT(answer, HasSubstr("grpc-status")) << encoding;
      EXPECT_EQ(answer.find("SELECT 1"), std::string::npos) << encoding << ": it was run";
    }
  }
  EXPECT_LT(PeakMemoryKb() - before, 24 << 10) << "KiB: it was unpacked";
  RecordingSink sink;
  EXPECT_TRUE(Connect()->Run("SELECT 1", {}, sink).ok()) << "the gateway goes on";
}

// Endless rows.
constexpr char kEndlessRows[] =
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT n, 'a text of some "
    "length that fills a window of HTTP/2' AS s FROM c";

class NeverReading : public GatewayLimits, public ::testing::WithParamInterface<const char*> {};

TEST_P(NeverReading, ClientLosesItsPlace) {
  config_.max_statements = 1;
  config_.write_timeout = 1;
  Start();
  v1::RunRequest request;
  request.set_script(kEndlessRows);
  proto::Request sqlflow_request;
  sqlflow_request.set_stmts(kEndlessRows);
  const std::string message = std::string(GetParam()).find("SQLFlow") == std::string::npos
                                  ? request.SerializeAsString()
                                  : sqlflow_request.SerializeAsString();
  const RawConnection silent(gateway_->address());
  silent.Send(std::string(kHttp2Preface) + Http2Settings() + Http2Call(GetParam(), {}) +
              Http2Message(0, message));
  EXPECT_FALSE(silent.Receive("a text of some", 10).empty()) << "it has begun";
  const auto client = Connect();
  Status status = ResourceExhausted("not tried yet");
  for (int i = 0; i < 100 && status.code() == Code::kResourceExhausted; ++i) {
    RecordingSink sink;
    status = client->Run("SELECT 1", {}, sink);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_TRUE(status.ok()) << status.ToString();
}

INSTANTIATE_TEST_SUITE_P(OfEachService, NeverReading,
                         ::testing::Values("/sluice.v1.Gateway/Run", "/proto.SQLFlow/Run"));

// Sockets that never send anything, or only an HTTP/2 preface: more than the gateway has
// descriptors.
class IdleSockets : public GatewayLimits, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Hello, IdleSockets, ::testing::Bool());

TEST_P(IdleSockets, LockNobodyOut) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  constexpr size_t kSockets = 1'100;
  if (limit.rlim_cur < 2 * kSockets) {
    GTEST_SKIP() << "this test needs as many descriptors itself";
  }
  BackgroundProcess gateway(
      "ulimit -n 1024; exec " SLUICE_BINARY " serve --grpc 127.0.0.1:0 --source " + config_.source);
  const std::string line = gateway.ReadLine();
  ASSERT_THAT(line, ::testing::StartsWith("gRPC on "));
  const std::string address = line.substr(8);
  std::vector<RawConnection> idle;
  for (size_t i = 0; i < kSockets; ++i) {
    ASSERT_TRUE(idle.emplace_back(address).open()) << i;
    if (GetParam()) {
      idle.back().Send(kHttp2Preface);
    }
  }
  const auto client = GatewayClient::Connect({address, "", "bob"});
  ASSERT_TRUE(client.ok()) << client.status().ToString();
  RecordingSink sink;
  const Status status = (*client)->Run("SELECT 1 AS n", {}, sink);
  EXPECT_TRUE(status.ok()) << status.ToString();
}

// Calls that never send their message: more than the gateway has threads.
class SilentCalls : public GatewayLimits, public ::testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(OfEachService, SilentCalls,
                         ::testing::Values("/sluice.v1.Gateway/Run", "/proto.SQLFlow/Run"));

TEST_P(SilentCalls, LockNobodyOut) {
  Start();
  constexpr size_t kCalls = 200;
  std::vector<RawConnection> silent;
  for (size_t i = 0; i < kCalls; ++i) {
    ASSERT_TRUE(silent.emplace_back(gateway_->address()).open()) << i;
    silent.back().Send(std::string(kHttp2Preface) + Http2Settings() + Http2Call(GetParam(), {}));
  }
  // While the calls arrive, gRPC may have no thread left for a moment; the limits then free them.
  const auto run = [this] {
    const auto client = GatewayClient::Connect({gateway_->address(), "", "bob"});
    RecordingSink sink;
    return client.ok() ? (*client)->Run("SELECT 1 AS n", {}, sink) : client.status();
  };
  Status status = run();
  for (int i = 0; i < 100 && !status.ok(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    status = run();
  }
  EXPECT_TRUE(status.ok()) << status.ToString();
  for (int i = 0; i < 3; ++i) {
    const Status again = run();
    EXPECT_TRUE(again.ok()) << again.ToString();
  }
}

}  // namespace
}  // namespace sluice::server
