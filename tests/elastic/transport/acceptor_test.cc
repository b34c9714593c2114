#include "elastic/transport/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <future>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace sluice::elastic {
namespace {

// The connections that were handed on, and what was read from them.
class HandedOn {
 public:
  Acceptor::HandOn Take() {
    return [this](Socket connection) {
      const MutexLock lock(mutex_);
      connections_.push_back(std::move(connection));
      changed_.notify_all();
    };
  }
  std::string WaitForText() {
    MutexLock lock(mutex_);
    changed_.wait(lock.native(), [this] { return !connections_.empty(); });
    char text[64];
    const ssize_t size = recv(connections_.front().descriptor(), text, sizeof text, 0);
    connections_.pop_front();
    return size > 0 ? std::string(text, static_cast<size_t>(size)) : "";
  }
  // False: there are fewer even after a long time.
  bool WaitFor(size_t size) {
    MutexLock lock(mutex_);
    return changed_.wait_for(lock.native(), std::chrono::seconds(30),
                             [&] { return connections_.size() >= size; });
  }
  size_t size() {
    const MutexLock lock(mutex_);
    return connections_.size();
  }

 private:
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<Socket> connections_;
};

Socket ConnectToPort(int port, const char* from = "127.0.0.1") {
  Socket made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  inet_pton(AF_INET, from, &own.sin_addr);
  EXPECT_EQ(bind(made.descriptor(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<in_port_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  return made;
}

Socket ConnectToName(const std::string& name) {
  Socket made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path + 1, name.data(), name.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  EXPECT_EQ(connect(made.descriptor(), reinterpret_cast<const sockaddr*>(&to), length), 0);
  return made;
}

bool IsClosed(const Socket& socket) {
  char byte = 0;
  return recv(socket.descriptor(), &byte, 1, MSG_DONTWAIT) == 0;
}

TEST(Acceptor, HandsOnWhoSpeaksAndDropsTheOldestOfTheSilent) {
  HandedOn handed_on;  // outlives the acceptor
  const auto acceptor = Acceptor::Listen("127.0.0.1:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().ToString();
  (*acceptor)->Start(handed_on.Take());
  std::vector<Socket> silent;
  for (int i = 0; i < 400; ++i) {
    silent.push_back(ConnectToPort((*acceptor)->port()));
  }
  const Socket speaks = ConnectToPort((*acceptor)->port());
  ASSERT_EQ(send(speaks.descriptor(), "hello", 5, 0), 5);
  EXPECT_EQ(handed_on.WaitForText(), "hello");
  EXPECT_EQ(handed_on.size(), 0U) << "the others have said nothing";
  EXPECT_TRUE(IsClosed(silent.front()));
  EXPECT_FALSE(IsClosed(silent.back()));
  ASSERT_EQ(send(silent.back().descriptor(), "at last", 7, 0), 7);
  EXPECT_EQ(handed_on.WaitForText(), "at last");
}

// Every place is taken by a client that has sent too little for a call: none may be dropped at
// once, and the newcomer waits until one may.
TEST(Acceptor, TheSilentOfOneAddressPushOutNobodyElse) {
  HandedOn handed_on;
  const auto acceptor = Acceptor::Listen("127.0.0.1:0").value();
  acceptor->Start(handed_on.Take());
  const Socket other = ConnectToPort(acceptor->port(), "127.0.0.2");
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i) {
    silent.push_back(ConnectToPort(acceptor->port()));
  }
  pollfd dropped{silent[0].descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&dropped, 1, 30'000), 1);
  EXPECT_EQ(send(other.descriptor(), "here", 4, MSG_NOSIGNAL), 4);
  EXPECT_EQ(handed_on.WaitForText(), "here");
}

TEST(Acceptor, ANewcomerWaitsForRoom) {
  constexpr size_t kPlaces = 32;
  constexpr int kBeyondTheLimit = 300;
  HandedOn handed_on;  // outlives the acceptor
  const auto acceptor = Acceptor::Listen("127.0.0.1:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().ToString();
  (*acceptor)->Start(handed_on.Take());
  std::vector<Socket> idle;
  while (idle.size() < kPlaces) {
    const Socket made = ConnectToPort((*acceptor)->port());
    idle.emplace_back(fcntl(made.descriptor(), F_DUPFD_CLOEXEC, kBeyondTheLimit));
    ASSERT_EQ(send(idle.back().descriptor(), "PRI * HTTP/2.0", 14, 0), 14);
  }
  ASSERT_TRUE(handed_on.WaitFor(kPlaces));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{2 * kPlaces, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);  // half of them are for connections
  const Socket newcomer = ConnectToPort((*acceptor)->port());
  ASSERT_EQ(send(newcomer.descriptor(), "hello", 5, 0), 5);
  EXPECT_TRUE(handed_on.WaitFor(kPlaces + 1));
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(Acceptor, ATakenPortIsAnError) {
  const auto first = Acceptor::Listen("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = Acceptor::Listen("127.0.0.1:" + std::to_string((*first)->port()));
  EXPECT_FALSE(second.ok());
  for (const char* address : {"", "127.0.0.1", "127.0.0.1:", "no.such.host.invalid:0", "unix:"}) {
    EXPECT_FALSE(Acceptor::Listen(address).ok()) << address;
  }
}

TEST(Acceptor, ANameListensOnAllOfItsAddresses) {
  HandedOn handed_on;  // outlives the acceptor
  const auto acceptor = Acceptor::Listen("localhost:0");
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().ToString();
  (*acceptor)->Start(handed_on.Take());
  const Socket speaks = ConnectToPort((*acceptor)->port());
  ASSERT_EQ(send(speaks.descriptor(), "hello", 5, 0), 5);
  EXPECT_EQ(handed_on.WaitForText(), "hello");
}

// The names of abstract addresses are visible to all users in /proc/net/unix.
TEST(Acceptor, ALocalAddressIsForProcessesOfOneUser) {
  const std::string name = "sluice-acceptor-test-" + std::to_string(getpid());
  HandedOn handed_on;  // outlives the acceptor
  const auto acceptor = Acceptor::Listen("unix-abstract:" + name);
  ASSERT_TRUE(acceptor.ok()) << acceptor.status().ToString();
  (*acceptor)->Start(handed_on.Take());
  if (geteuid() == 0) {
    const pid_t other = fork();
    if (other == 0) {
      constexpr uid_t kNoIncarnation = 65534;
      if (setuid(kNoIncarnation) != 0) {
        _exit(2);
      }
      const Socket socket = ConnectToName(name);
      send(socket.descriptor(), "stranger", 8, MSG_NOSIGNAL);
      char byte = 0;
      _exit(recv(socket.descriptor(), &byte, 1, 0) <= 0 ? 0 : 1);
    }
    int status = 0;
    waitpid(other, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0) << "it was not thrown out";
  }
  const Socket own = ConnectToName(name);
  ASSERT_EQ(send(own.descriptor(), "friend", 6, 0), 6);
  EXPECT_EQ(handed_on.WaitForText(), "friend");
}

}  // namespace
}  // namespace sluice::elastic
