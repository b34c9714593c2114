#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {
namespace {

// A socket of the context, and its other end.
struct Pair {
  explicit Pair(boost::asio::io_context& context) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    socket = std::make_unique<ReadySockets::Socket>(context, ends[0]);
    other = ends[1];
  }
  ~Pair() { Leave(); }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void Say(std::string_view bytes) const {
    EXPECT_EQ(write(other, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  void Leave() {
    if (other >= 0) {
      close(std::exchange(other, -1));
    }
  }
  ssize_t Read(size_t most) const {
    std::vector<char> bytes(most);
    return read(socket->descriptor(), bytes.data(), most);
  }
  void Fill() const {
    const std::vector<char> bytes(size_t{1} << 20);
    while (send(socket->descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
    }
  }

  std::unique_ptr<ReadySockets::Socket> socket;
  int other = -1;
};

class ReadySocketsTest : public ::testing::Test {
 protected:
  void Poll() {
    context_.restart();
    context_.poll();
  }
  // Counts those that are told so.
  ReadySockets::Then Count(int& told) {
    return [&told](bool ok) { told += ok ? 1 : 100; };
  }

  boost::asio::io_context context_{1};
};

TEST_F(ReadySocketsTest, EachWaitIsForWhatHasNotBeenRead) {
  const Pair pair(context_);
  int told = 0;
  pair.socket->WaitReadable(Count(told));
  Poll();
  EXPECT_EQ(told, 0);
  pair.Say("abcdef");
  Poll();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(pair.Read(3), 3);  // there is more
  pair.socket->WaitReadable(Count(told));
  EXPECT_EQ(told, 1) << "never from inside";
  Poll();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(pair.Read(10), 3);
  pair.socket->Drained();
  pair.socket->WaitReadable(Count(told));
  Poll();
  EXPECT_EQ(told, 2);
  pair.socket->Close();
  Poll();
  EXPECT_EQ(told, 102);
}

// Data and the end come in one event.
TEST_F(ReadySocketsTest, TheEndIsToldBehindWhatWasSaid) {
  Pair pair(context_);
  Poll();
  pair.Say("abc");
  pair.Leave();
  Poll();
  int told = 0;
  pair.socket->WaitReadable(Count(told));
  Poll();
  EXPECT_EQ(pair.Read(10), 3);
  pair.socket->Drained();
  pair.socket->WaitReadable(Count(told));
  Poll();
  EXPECT_EQ(told, 2);
  EXPECT_EQ(pair.Read(10), 0);
}

TEST_F(ReadySocketsTest, RoomIsToldOnceThereIsAny) {
  const Pair pair(context_);
  Poll();
  shutdown(pair.other, SHUT_WR);  // it goes on reading
  Poll();
  pair.Fill();
  int told = 0;
  pair.socket->WaitWritable(Count(told), false);
  for (int i = 0; i < 10; ++i) {
    Poll();
  }
  EXPECT_EQ(told, 0);
  fcntl(pair.other, F_SETFL, O_NONBLOCK);
  std::vector<char> bytes(size_t{1} << 20);
  while (read(pair.other, bytes.data(), bytes.size()) > 0) {
  }
  Poll();
  EXPECT_EQ(told, 1);
}

TEST_F(ReadySocketsTest, AnErrorOfOneCostsNobodyTheirs) {
  Pair one(context_);
  const Pair other(context_);
  Poll();
  int told = 0;
  one.socket->WaitReadable([](bool /*ok*/) { throw std::runtime_error("of one"); });
  one.Say("a");
  context_.restart();
  EXPECT_THROW(context_.run_one(), std::runtime_error);
  other.socket->WaitReadable(Count(told));
  other.Say("a");
  Poll();
  EXPECT_EQ(told, 1);
  // A descriptor that another process has, too, says nothing more here.
  const int shared = dup(one.socket->descriptor());
  one.socket.reset();
  one.Say("a");
  Poll();
  close(shared);
}

TEST_F(ReadySocketsTest, ManyAtOnceLeaveTimeForOtherWork) {
  std::vector<std::unique_ptr<Pair>> pairs;
  int told = 0;
  for (int i = 0; i < 200; ++i) {
    pairs.push_back(std::make_unique<Pair>(context_));
    pairs.back()->socket->WaitReadable(Count(told));
    pairs.back()->Say("a");
  }
  boost::asio::steady_timer timer(context_, std::chrono::milliseconds(1));
  timer.async_wait([this](const boost::system::error_code&) { context_.stop(); });
  context_.run();  // until the timer has had its turn
  Poll();
  EXPECT_EQ(told, 200);
}

// What the handlers of this test share: a message, and behind it a second one.
class TwoMessages {
 public:
  explicit TwoMessages(boost::asio::io_context& context) : pair_(context) {}

  // `before_second`: what the first one's handler does besides.
  void Run(const std::function<void()>& before_second) {
    pair_.socket->WaitReadable([this, before_second](bool /*ok*/) {
      ++told;
      EXPECT_EQ(pair_.Read(10), 1);
      pair_.socket->Drained();
      before_second();
      pair_.socket->WaitReadable([this](bool /*ok*/) { ++told; });
      pair_.Say("b");
    });
    pair_.Say("a");
  }
  ReadySockets::Socket& socket() { return *pair_.socket; }

  int told = 0;

 private:
  Pair pair_;
};

// One turn of the context's is then enough for both.
TEST_F(ReadySocketsTest, AnExpectedAnswerIsWaitedForAtOnce) {
  TwoMessages plain(context_);
  plain.Run([] {});
  context_.run_one();
  EXPECT_EQ(plain.told, 1);
  context_.run_one();
  EXPECT_EQ(plain.told, 2);

  TwoMessages answered(context_);
  answered.Run([&answered] { answered.socket().ExpectAnswer(); });
  context_.run_one();
  EXPECT_EQ(answered.told, 2);
}

TEST_F(ReadySocketsTest, PostedWorkComesBeforeAnExpectedAnswer) {
  TwoMessages messages(context_);
  std::vector<int> told_when_posted;
  messages.Run([&] {
    messages.socket().ExpectAnswer();
    std::thread([&] {
      ReadySockets::Post(context_, [&] { told_when_posted.push_back(messages.told); });
    }).join();
  });
  context_.run_one();
  EXPECT_EQ(messages.told, 1);
  Poll();
  EXPECT_EQ(told_when_posted, std::vector<int>{1});
  EXPECT_EQ(messages.told, 2);
}

// The message is never answered by itself: it takes what another thread posts.
TEST_F(ReadySocketsTest, AThreadThatWaitsForAnAnswerIsWoken) {
  const Pair pair(context_);
  int turns = 0;
  constexpr int kTurns = 1'000;
  std::atomic<bool> asked = false;
  std::function<void(bool)> expect = [&](bool /*ok*/) {
    EXPECT_EQ(pair.Read(10), 1);
    pair.socket->Drained();
    pair.socket->ExpectAnswer();
    pair.socket->WaitReadable(expect);
    asked = true;
  };
  pair.socket->WaitReadable(expect);
  pair.Say("a");
  std::thread poster([&] {
    for (int i = 0; i < kTurns; ++i) {
      while (!asked.exchange(false)) {
        std::this_thread::yield();
      }
      ReadySockets::Post(context_, [&] {
        if (++turns == kTurns) {
          context_.stop();
        } else {
          pair.Say("a");
        }
      });
    }
  });
  context_.run();
  poster.join();
  EXPECT_EQ(turns, kTurns);
}

TEST(ReadySockets, WhoWaitsGoesWithTheContext) {
  struct Session {
    std::unique_ptr<Pair> pair;
  };
  std::weak_ptr<Session> gone;
  {
    boost::asio::io_context context(1);
    const auto session = std::make_shared<Session>();
    session->pair = std::make_unique<Pair>(context);
    session->pair->socket->WaitReadable([session](bool /*ok*/) {});
    gone = session;
  }
  EXPECT_TRUE(gone.expired());
}

}  // namespace
}  // namespace sluice::server::pgwire
