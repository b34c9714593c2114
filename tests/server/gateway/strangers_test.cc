#include "server/gateway/strangers.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "server/gateway/client_login_internal.h"
#include "server/gateway/gateway.grpc.pb.h"
#include "server/gateway/sqlflow.grpc.pb.h"
#include "server/pgwire/password_file.h"
#include "tests/server/gateway/raw_http2.h"
#include "tests/server/gateway/running_gateway.h"
#include "tests/support/eventually.h"
#include "tests/support/recording_sink.h"

namespace sluice::server {
namespace {

using ::testing::HasSubstr;

// A TCP connection within this process.
class Pair {
 public:
  explicit Pair(int family = AF_INET, const char* from = "127.0.0.1") {
    const elastic::Socket listener(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_storage address{};
    address.ss_family = static_cast<sa_family_t>(family);
    socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (family == AF_INET) {
      reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    } else {
      reinterpret_cast<sockaddr_in6&>(address).sin6_addr = in6addr_loopback;
    }
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.descriptor(), at, size) != 0 || listen(listener.descriptor(), 1) != 0 ||
        getsockname(listener.descriptor(), at, &size) != 0) {
      return;
    }
    client_ = elastic::Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (family == AF_INET) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      inet_pton(AF_INET, from, &own.sin_addr);
      EXPECT_EQ(bind(client_.descriptor(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    }
    EXPECT_EQ(connect(client_.descriptor(), at, size), 0);
    server_ = elastic::Socket(accept(listener.descriptor(), nullptr, nullptr));
    EXPECT_EQ(getsockname(client_.descriptor(), at, &size), 0);
    port_ = ntohs(family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                    : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
  }
  bool open() const { return server_.open(); }
  const elastic::Socket& server() const { return server_; }
  int port() const { return port_; }
  // What the server's end is in gRPC's spelling, for IPv4.
  std::string peer() const { return "ipv4:127.0.0.1:" + std::to_string(port_); }
  void Send(size_t bytes) const {
    const std::string text(bytes, 'x');
    send(client_.descriptor(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  bool Disconnected() const {
    char byte = 0;
    return recv(client_.descriptor(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET ||
           errno == EPIPE;
  }

 private:
  elastic::Socket client_;
  elastic::Socket server_;
  int port_ = 0;
};

constexpr Strangers::Limits kFew{
    .bytes = 1'000, .bytes_a_second = 0, .bytes_of_address = 2'500, .most = 3};

TEST(Strangers, WhoSendsTooMuchBeforeTheLoginIsDisconnected) {
  Strangers strangers(kFew);
  const Pair much;
  const Pair little;
  EXPECT_TRUE(strangers.Add(much.server()));
  EXPECT_TRUE(strangers.Add(little.server()));
  EXPECT_TRUE(strangers.BeginCall(much.peer()));
  little.Send(900);
  much.Send(1'100);
  EXPECT_TRUE(Eventually([&] { return much.Disconnected(); }));
  EXPECT_FALSE(little.Disconnected());
  EXPECT_FALSE(strangers.BeginCall(much.peer()));
}

TEST(Strangers, WhoHasLoggedInSendsWhatTheyLike) {
  Strangers strangers(kFew);
  const Pair known;
  const Pair other;
  EXPECT_TRUE(strangers.Add(known.server()));
  EXPECT_TRUE(strangers.Add(other.server()));
  strangers.Welcome(known.peer());
  EXPECT_FALSE(strangers.BeginCall(known.peer()));
  known.Send(50'000);
  other.Send(1'001);
  EXPECT_TRUE(Eventually([&] { return other.Disconnected(); }));
  EXPECT_FALSE(known.Disconnected());
}

TEST(Strangers, WhoBeginsTooManyCallsIsDisconnected) {
  Strangers strangers({.calls = 3});
  const Pair pair;
  EXPECT_TRUE(strangers.Add(pair.server()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(strangers.BeginCall(pair.peer()));
  }
  EXPECT_FALSE(pair.Disconnected());
  EXPECT_TRUE(strangers.BeginCall(pair.peer()));
  EXPECT_TRUE(Eventually([&] { return pair.Disconnected(); }));
}

TEST(Strangers, AllTogetherAreLimited) {
  for (const Strangers::Limits& limits :
       {Strangers::Limits{.bytes = 1'000, .bytes_of_address = 1'000},
        Strangers::Limits{.bytes = 1'000, .bytes_of_all = 1'000}}) {
    Strangers strangers(limits);
    std::vector<Pair> pairs(20);
    for (const Pair& pair : pairs) {
      pair.Send(900);
      std::ignore = strangers.Add(pair.server());  // of the later ones some may be refused
    }
    const auto disconnected = [&pairs] {
      return std::count_if(pairs.begin(), pairs.end(),
                           [](const Pair& pair) { return pair.Disconnected(); });
    };
    EXPECT_TRUE(Eventually([&] { return disconnected() >= 10; }));
    EXPECT_LT(disconnected(), 20) << "the first may send";
  }
}

TEST(Strangers, ANewOneReplacesTheOldest) {
  Strangers strangers(kFew);
  const std::vector<Pair> pairs(4);
  for (const Pair& pair : pairs) {
    EXPECT_TRUE(strangers.Add(pair.server()));
  }
  EXPECT_TRUE(Eventually([&] { return pairs[0].Disconnected(); }));
  EXPECT_FALSE(strangers.BeginCall(pairs[0].peer()));
  EXPECT_TRUE(strangers.BeginCall(pairs[1].peer()));
  EXPECT_TRUE(strangers.BeginCall(pairs[3].peer()));
}

TEST(Strangers, OneAddressTakesNoPlacesFromOthers) {
  Strangers strangers({.most = 4});
  const Pair other(AF_INET, "127.0.0.2");
  EXPECT_TRUE(strangers.Add(other.server()));
  const std::vector<Pair> many(20);
  for (const Pair& pair : many) {
    EXPECT_TRUE(strangers.Add(pair.server()));
  }
  EXPECT_TRUE(Eventually([&] { return many[0].Disconnected(); }));
  EXPECT_FALSE(other.Disconnected());
  EXPECT_FALSE(many.back().Disconnected());
}

TEST(Strangers, WhatOneAddressSendsInExcessIsNotTakenFromAll) {
  Strangers strangers({.bytes = 1'000, .bytes_of_address = 2'000, .bytes_of_all = 4'000});
  std::vector<Pair> many(20);
  for (const Pair& pair : many) {
    EXPECT_TRUE(strangers.Add(pair.server()));
  }
  for (const Pair& pair : many) {
    pair.Send(10'000);
  }
  EXPECT_TRUE(Eventually([&] {
    return std::all_of(many.begin(), many.end(),
                       [](const Pair& pair) { return pair.Disconnected(); });
  }));
  const Pair other(AF_INET, "127.0.0.2");
  EXPECT_TRUE(strangers.Add(other.server()));
}

TEST(Strangers, AddressesAreSpelledAsGrpcSpellsThem) {
  const Pair six(AF_INET6);
  if (!six.open()) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  Strangers strangers(kFew);
  EXPECT_TRUE(strangers.Add(six.server()));
  EXPECT_TRUE(strangers.BeginCall("ipv6:%5B::1%5D:" + std::to_string(six.port())));
}

// A gateway over SQLite with one user, ann.
class StrangersAtAGateway : public RunningGateway {
 protected:
  void SetUp() override {
    RunningGateway::SetUp();
    passwords_ = path_ + ".users/passwords";
    ASSERT_TRUE(pgwire::SetPassword(passwords_, "ann", "right").ok());
    config_.password_file = passwords_;
    config_.auth = "scram";
    config_.max_statements = 16;
    Start();
  }
  void TearDown() override {
    RunningGateway::TearDown();
    std::filesystem::remove_all(path_ + ".users");
  }
  Status RunAs(const std::string& password, const std::string& script) {
    auto client = GatewayClient::Connect({gateway_->address(), "", "ann", "ann", password});
    RETURN_IF_ERROR(client.status());
    RecordingSink sink;
    return (*client)->Run(script, {}, sink);
  }

  std::shared_ptr<grpc::Channel> NewConnection() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // shared with no other channel
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomChannel(gateway_->address(), grpc::InsecureChannelCredentials(),
                                     arguments);
  }

  std::string passwords_;
};

// Streams that are opened and reset at once, HTTP/2's rapid reset.
std::string ResetStreams(const std::string& path, uint32_t first, uint32_t streams) {
  constexpr uint8_t kHeaders = 1;
  constexpr uint8_t kEndHeaders = 4;
  constexpr uint8_t kReset = 3;
  const std::string cancel("\0\0\0\x08", 4);
  std::string frames;
  for (uint32_t i = 0; i < streams; ++i) {
    const uint32_t stream = first + 2 * i;
    // The first block names the headers for the later ones (HPACK's dynamic table).
    const std::string block =
        stream == 1 ? "\x83\x86\x44" + std::string(1, static_cast<char>(path.size())) + path +
                          "\x41\x01" + "a\x40\x02te\x08trailers\x5f\x10" + "application/grpc"
                    : "\x83\x86\xc1\xc0\xbf\xbe";
    frames += Http2Frame(kHeaders, kEndHeaders, stream, block);
    frames += Http2Frame(kReset, 0, stream, cancel);
  }
  return frames;
}

TEST_F(StrangersAtAGateway, WhoOpensAndResetsStreamsIsDisconnected) {
  for (const char* const path :
       {"/sluice.v1.Gateway/Run", "/sluice.v1.Gateway/GetVersion", "/proto.SQLFlow/Run",
        "/grpc.health.v1.Health/Check", "/no/Such"}) {
    const RawConnection connection(gateway_->address());
    connection.Send(std::string(kHttp2Preface) + Http2Settings());
    constexpr uint32_t kStreams = 1'000;
    constexpr uint32_t kMost = 200;  // times kStreams: 5.6 MB
    uint32_t sent = 0;
    while (sent < kMost && connection.Send(ResetStreams(path, 1 + sent * 2 * kStreams, kStreams))) {
      ++sent;
    }
    EXPECT_LT(sent, kMost) << path;
    EXPECT_TRUE(connection.ClosedWithin(30)) << path;
  }
  EXPECT_TRUE(Eventually([&] { return RunAs("right", "SELECT 1").ok(); }));
}

// The login is checked before the message is read.
TEST_F(StrangersAtAGateway, TheFirstScriptMayBeLong) {
  const auto run = [&](const std::string& password) {
    grpc::ClientContext context;
    context.AddMetadata(kAuthorization, BasicAuthorization("ann", password));
    v1::RunRequest request;
    request.set_script("SELECT 1 --" + std::string(12 << 20, 'x'));
    const auto stream = v1::Gateway::NewStub(NewConnection())->Run(&context, request);
    v1::RunUpdate update;
    while (stream->Read(&update)) {
    }
    return stream->Finish();
  };
  const grpc::Status right = run("right");
  EXPECT_TRUE(right.ok()) << right.error_message().substr(0, 300);
  const grpc::Status wrong = run("wrong");
  EXPECT_EQ(wrong.error_code(), grpc::StatusCode::UNAUTHENTICATED) << wrong.error_message();
}

// Its login is in the message itself, or in the call's metadata.
TEST_F(StrangersAtAGateway, ASqlflowClientLogsInWithItsFirstMessage) {
  const auto run = [&](const std::string& script, bool metadata) {
    const auto stub = proto::SQLFlow::NewStub(NewConnection());
    grpc::ClientContext context;
    if (metadata) {
      context.AddMetadata(kAuthorization, BasicAuthorization("ann", "right"));
    }
    proto::Request request;
    request.set_stmts(script);
    const auto stream = stub->Run(&context, request);
    proto::Response response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  EXPECT_THAT(run("SELECT 1", false).error_message(), HasSubstr("asks for a user"));
  const std::string script = "SELECT 1 --" + std::string(1 << 20, 'x');
  EXPECT_TRUE(run(script, true).ok());
  EXPECT_FALSE(run(script, false).ok()) << "disconnected, or refused if it was that fast";
}

}  // namespace
}  // namespace sluice::server
