#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "elastic/transport/acceptor.h"
#include "elastic/transport/message_limits.h"
#include "elastic/transport/shared_rings_internal.h"
#include "elastic/transport/status.pb.h"
#include "elastic/transport/stream_server_internal.h"

// Message streams and their server.
namespace sluice::elastic {
namespace {

using Deadline = MessageStream::Deadline;

Deadline In(std::chrono::milliseconds time) {
  return std::chrono::steady_clock::now() + time;
}
Deadline InTime() {
  return In(std::chrono::seconds(20));
}

// Sends each message back, and an error for one without a token.
void Echo(MessageStream& stream) {
  HelloProto message;
  while (stream.Receive(&message, Deadline::max()).ok()) {
    const Status sent = message.token().empty()
                            ? stream.SendError(NotFound("no token").Hint("say one"), InTime())
                            : stream.Send(message, InTime());
    if (!sent.ok()) {
      return;
    }
  }
}

// How the ends of a stream reach each other: through the loopback device, or through memory that
// they share.
enum class Way { kLoopback, kMemory };

std::string FreeAddress(Way way) {
  static std::atomic<int> number = 0;
  return way == Way::kMemory
             ? fmt::format("unix-abstract:sluice-test-streams-{}-{}", getpid(), ++number)
             : "127.0.0.1:0";
}

// A stream server at a free address of this machine.
class Streams {
 public:
  explicit Streams(const JobKey& key, StreamServer::Serve serve = Echo, Way way = Way::kLoopback)
      : server_(key, std::move(serve)),
        listened_(FreeAddress(way)),
        acceptor_(Acceptor::Listen(listened_).value()) {
    acceptor_->Start([this](Socket socket) { server_.Take(std::move(socket)); });
  }
  Streams(const JobKey& key, Way way) : Streams(key, Echo, way) {}
  ~Streams() { acceptor_.reset(); }
  std::string address() const {
    return listened_.starts_with("unix") ? listened_
                                         : "127.0.0.1:" + std::to_string(acceptor_->port());
  }
  Result<MessageStream> Connect(const JobKey& key) const {
    const auto encryption = Encryption::Make(key).value();
    return MessageStream::Connect(address(), key, encryption.get(), InTime());
  }

 private:
  StreamServer server_;
  const std::string listened_;
  std::unique_ptr<Acceptor> acceptor_;
};

class EachWay : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(MessageStream, EachWay, ::testing::Values(Way::kLoopback, Way::kMemory),
                         [](const auto& which) {
                           return which.param == Way::kMemory ? "Memory" : "Loopback";
                         });

HelloProto MessageOf(const std::string& text) {
  HelloProto message;
  message.set_token(text);
  return message;
}

TEST_P(EachWay, CarriesMessagesOfAnyLength) {
  for (const JobKey& key : {JobKey("token"), MakeJobKey("token").value()}) {
    const Streams streams(key, GetParam());
    MessageStream stream = streams.Connect(key).value();
    HelloProto answer;
    for (const size_t length : {1, 100, 20'000, 3'000'000, 5}) {
      std::string text(length, 'a');
      text.back() = 'z';
      ASSERT_TRUE(stream.Send(MessageOf(text), InTime()).ok());
      ASSERT_TRUE(stream.Receive(&answer, InTime()).ok());
      EXPECT_EQ(answer.token(), text);
    }
  }
}

TEST_P(EachWay, AnErrorIsAnAnswer) {
  const Streams streams("token", GetParam());
  MessageStream stream = streams.Connect("token").value();
  HelloProto answer;
  ASSERT_TRUE(stream.Send(HelloProto(), InTime()).ok());
  const Status status = stream.Receive(&answer, InTime());
  EXPECT_EQ(status.ToString(), NotFound("no token").Hint("say one").ToString());
  ASSERT_TRUE(stream.open());
  ASSERT_TRUE(stream.Send(MessageOf("more"), InTime()).ok());
  ASSERT_TRUE(stream.Receive(&answer, InTime()).ok());
  EXPECT_EQ(answer.token(), "more");
}

// An error that would be taken for an answer that has not come yet.
TEST(MessageStream, TheirDeadlineIsNotOurs) {
  const Streams streams("token", [](MessageStream& stream) {
    HelloProto message;
    ASSERT_TRUE(stream.Receive(&message, InTime()).ok());
    ASSERT_TRUE(stream.SendError(Status(Code::kDeadlineExceeded, "theirs"), InTime()).ok());
  });
  MessageStream stream = streams.Connect("token").value();
  HelloProto answer;
  ASSERT_TRUE(stream.Send(MessageOf("text"), InTime()).ok());
  const Status status = stream.Receive(&answer, InTime());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(status.message(), "theirs");
}

TEST_P(EachWay, AStrangerIsRefused) {
  const JobKey ours = MakeJobKey("token").value(), theirs = MakeJobKey("token").value();
  const Streams plain("token", GetParam()), encrypted(ours, GetParam());
  EXPECT_EQ(plain.Connect("another").status().code(), Code::kPermissionDenied);
  EXPECT_EQ(encrypted.Connect(theirs).status().code(), Code::kUnavailable);
  EXPECT_EQ(encrypted.Connect("token").status().code(), Code::kUnavailable);  // without TLS
  JobKey other_token = ours;
  other_token.token = "another";
  EXPECT_EQ(encrypted.Connect(other_token).status().code(), Code::kPermissionDenied);
  EXPECT_TRUE(encrypted.Connect(ours).ok());
}

// What a stranger writes after his first byte ends his connection, and nothing else.
TEST_P(EachWay, NonsenseEndsTheConnection) {
  const Streams streams("token", GetParam());
  const std::string opening = "SLUICE1\n";
  for (const std::string& nonsense :
       {std::string("SOMETHING ELSE"), opening + std::string("\xFF\xFF\xFF\x7F\0\0\0\0", 8),
        opening + std::string("\4\0\0\0\0\0\0\0\xFF\xFF\xFF\xFF", 12),
        opening + std::string("\0\0\0\0\7\0\0\0", 8)}) {
    const Socket socket = ConnectToServer(streams.address()).value();
    ASSERT_TRUE(WaitFor(socket.descriptor(), POLLOUT, InTime()));
    ASSERT_EQ(send(socket.descriptor(), nonsense.data(), nonsense.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(nonsense.size()));
    char byte = 0;
    ssize_t got = -1;
    do {  // a refusal may come before the end
      ASSERT_TRUE(WaitFor(socket.descriptor(), POLLIN, InTime()));
      got = recv(socket.descriptor(), &byte, 1, 0);
    } while (got == 1);
    EXPECT_LE(got, 0);
  }
  EXPECT_TRUE(streams.Connect("token").ok());
}

// A process that may open no further file does not get the memory: messages pass through the
// socket, and the other end is told so.
TEST(MessageStream, WithoutTheMemoryTheSocketServes) {
  const Streams streams("token", Way::kMemory);
  for (const bool something_else : {false, true}) {
    const Socket socket = ConnectToServer(streams.address()).value();
    ASSERT_TRUE(WaitFor(socket.descriptor(), POLLOUT, InTime()));
    const std::string opening = "SLUICE1\n";
    if (something_else) {
      const Socket file(memfd_create("not for this", MFD_CLOEXEC));
      ASSERT_TRUE(SendWithFile(socket, opening, file));
    } else {
      ASSERT_EQ(send(socket.descriptor(), opening.data(), opening.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(opening.size()));
    }
    const auto say = [&](const HelloProto& message) {
      std::string frame(8, '\0');
      const auto length = static_cast<uint32_t>(message.ByteSizeLong());
      std::memcpy(frame.data(), &length, sizeof(length));
      frame += message.SerializeAsString();
      ASSERT_EQ(send(socket.descriptor(), frame.data(), frame.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(frame.size()));
    };
    const auto hear = [&](HelloProto* message) {
      std::string frame;
      uint32_t length = 0;
      while (frame.size() < 8 + length) {
        ASSERT_TRUE(WaitFor(socket.descriptor(), POLLIN, InTime()));
        char byte = 0;
        ASSERT_EQ(recv(socket.descriptor(), &byte, 1, 0), 1);
        frame += byte;
        if (frame.size() == 8) {
          std::memcpy(&length, frame.data(), sizeof(length));
        }
      }
      ASSERT_TRUE(message->ParseFromString(frame.substr(8)));
    };
    HelloProto hello = MessageOf("token"), answer;
    hello.set_build(BuildId());
    say(hello);
    hear(&answer);
    EXPECT_FALSE(answer.shares_memory());
    say(MessageOf("echo"));
    hear(&answer);
    EXPECT_EQ(answer.token(), "echo");
  }
}

TEST_P(EachWay, AnAnswerMayBeAwaitedInParts) {
  std::atomic<bool> answers = false;
  const Streams streams(
      "token",
      [&answers](MessageStream& stream) {
        HelloProto message;
        ASSERT_TRUE(stream.Receive(&message, InTime()).ok());
        answers.wait(false);
        ASSERT_TRUE(stream.Send(message, InTime()).ok());
      },
      GetParam());
  MessageStream stream = streams.Connect("token").value();
  HelloProto answer;
  ASSERT_TRUE(stream.Send(MessageOf("text"), InTime()).ok());
  EXPECT_EQ(stream.Receive(&answer, In(std::chrono::milliseconds(30))).code(),
            Code::kDeadlineExceeded);
  ASSERT_TRUE(stream.open());
  answers = true;
  answers.notify_all();
  ASSERT_TRUE(stream.Receive(&answer, InTime()).ok());
  EXPECT_EQ(answer.token(), "text");
}

TEST_P(EachWay, ALostEndIsNoticed) {
  auto streams = std::make_unique<Streams>("token", GetParam());
  MessageStream stream = streams->Connect("token").value();
  const std::string address = streams->address();
  streams.reset();  // although the stream's thread waits for a message
  HelloProto answer;
  static_cast<void>(stream.Send(MessageOf("text"), InTime()));
  EXPECT_EQ(stream.Receive(&answer, InTime()).code(), Code::kUnavailable);
  EXPECT_FALSE(stream.open());
  EXPECT_EQ(MessageStream::Connect(address, "token", nullptr, InTime()).status().code(),
            Code::kUnavailable);
}

TEST_P(EachWay, AMessageThatIsTooLongIsNotSent) {
  const Streams streams("token", GetParam());
  MessageStream stream = streams.Connect("token").value();
  const std::string text(kMaxMessageBytes + kEnvelopeBytes, 'x');
  EXPECT_EQ(stream.Send(MessageOf(text), InTime()).code(), Code::kResourceExhausted);
  HelloProto answer;
  ASSERT_TRUE(stream.Send(MessageOf("text"), InTime()).ok());
  ASSERT_TRUE(stream.Receive(&answer, InTime()).ok());
}

TEST(MessageStream, WhoDoesNotSayWhoHeIsTakesNoMoreThanAFewThreads) {
  const Streams streams("token");
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(ConnectToServer(streams.address()).value());
    ASSERT_TRUE(WaitFor(silent.back().descriptor(), POLLOUT, InTime()));
    ASSERT_EQ(send(silent.back().descriptor(), "S", 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_TRUE(streams.Connect("token").ok());
  // The last ones are still there; the first have made room for them.
  int closed = 0;
  for (int i = 0; i < 130; ++i) {
    char byte = 0;
    ASSERT_TRUE(WaitFor(silent[static_cast<size_t>(i)].descriptor(), POLLIN, InTime())) << i;
    closed += recv(silent[static_cast<size_t>(i)].descriptor(), &byte, 1, 0) <= 0 ? 1 : 0;
  }
  EXPECT_EQ(closed, 130);
  EXPECT_FALSE(WaitFor(silent.back().descriptor(), POLLIN, In(std::chrono::milliseconds(20))));
}

}  // namespace
}  // namespace sluice::elastic
