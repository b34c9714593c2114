#include "elastic/transport/connection.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::elastic {
namespace {

std::chrono::steady_clock::time_point Soon(double patience = 20) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(patience));
}

void WaitASecondFor(const Connection& connection, short what) {
  pollfd entry{connection.descriptor(), what, 0};
  poll(&entry, 1, 1'000);
}

Socket Accept(const Listener& listener) {
  for (;;) {
    pollfd entry{listener.descriptor(), POLLIN, 0};
    poll(&entry, 1, 1'000);
    Socket socket = listener.Accept();
    if (socket.open()) {
      return socket;
    }
  }
}

// Both ends of a connection, each with a key.
struct Ends {
  Result<Connection> made, accepted;
};
Ends Connect(const JobKey& ours, const JobKey& theirs, double patience = 20) {
  const auto encryption = Encryption::Make(ours).value();
  const auto other = Encryption::Make(theirs).value();
  const Listener listener = Listener::Open(Listener::Kind::kTcp, "127.0.0.1").value();
  auto accepted = std::async(std::launch::async, [&] {
    return Connection::Open(Accept(listener), other.get(), true, Soon(patience));
  });
  Result<Connection> made = Connection::Open(ConnectTo(listener.address()).value(),
                                             encryption.get(), false, Soon(patience));
  return {std::move(made), accepted.get()};
}

TEST(Connection, CarriesWhatIsMoreThanARecord) {
  const JobKey key = MakeJobKey("token").value();
  for (const JobKey& each : {JobKey("token"), key}) {
    Ends ends = Connect(each, each);
    ASSERT_TRUE(ends.made.ok()) << ends.made.status().ToString();
    ASSERT_TRUE(ends.accepted.ok()) << ends.accepted.status().ToString();
    std::string text(3'000'000, ' ');
    for (size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<char>('a' + i * 7919 % 26);
    }
    const std::jthread sender([&] {
      for (size_t sent = 0; sent < text.size();) {
        iovec pieces[2] = {{text.data() + sent, std::min<size_t>(100'000, text.size() - sent)},
                           {text.data(), 0}};
        const ptrdiff_t more = ends.made->Send(pieces);
        ASSERT_GE(more, 0);
        sent += static_cast<size_t>(more);
        if (more == 0) {
          WaitASecondFor(*ends.made, POLLOUT);
        }
      }
    });
    std::string heard(text.size(), ' ');
    for (size_t got = 0; got < heard.size();) {
      // Reads less than a record at a time: poll does not see the rest, which TLS has already read.
      const auto room = std::as_writable_bytes(std::span(heard)).subspan(got);
      const ptrdiff_t more = ends.accepted->Receive(room.first(std::min<size_t>(room.size(), 999)));
      ASSERT_GE(more, 0);
      got += static_cast<size_t>(more);
      if (more == 0) {
        EXPECT_FALSE(ends.accepted->holds_more());
        WaitASecondFor(*ends.accepted, POLLIN);
      }
    }
    EXPECT_EQ(heard, text);
    *ends.made = Connection();
    std::byte room[1];
    WaitASecondFor(*ends.accepted, POLLIN);
    EXPECT_EQ(ends.accepted->Receive(room), -1) << "it has gone";
  }
}

TEST(Connection, ADifferentJobIsRefused) {
  const Ends ends = Connect(MakeJobKey("a").value(), MakeJobKey("a").value());
  EXPECT_EQ(ends.made.status().code(), Code::kUnavailable);
  EXPECT_EQ(ends.accepted.status().code(), Code::kUnavailable);
  EXPECT_EQ(ends.made.status().message(), "the other end does not have the job's key");
}

TEST(Connection, WhoDoesNotEncryptIsRefused) {
  const Ends ends = Connect(JobKey("a"), MakeJobKey("a").value(), 0.2);
  EXPECT_EQ(ends.accepted.status().code(), Code::kUnavailable);
}

TEST(Connection, ADamagedPairIsAnError) {
  JobKey key = MakeJobKey("a").value();
  key.private_key = MakeJobKey("a")->private_key;
  EXPECT_EQ(Encryption::Make(key).status().code(), Code::kInternal);
}

TEST(JobKeyTest, ThisProgramHasABuild) {
  EXPECT_GE(BuildId().size(), 16U);
  EXPECT_EQ(BuildId(), BuildId());
}

}  // namespace
}  // namespace sluice::elastic
