#include "server/gateway/client_stream_internal.h"

#include <google/protobuf/wrappers.pb.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace sluice::server {
namespace {

class HandClock final : public Clock {
 public:
  TimePoint Now() const override { return now_.load(); }
  void Advance(std::chrono::seconds by) { now_ = now_.load() + by; }

 private:
  std::atomic<TimePoint> now_ = TimePoint(0);
};

// A client that reads when the test lets it.
class FakeClient {
 public:
  ClientStream::Call Call() {
    return {[this](const google::protobuf::Message& message) { return Write(message); },
            [this] { GoAway(); },
            [this] {
              const MutexLock lock(mutex_);
              return gone_;
            }};
  }
  void ReadOn() {
    const MutexLock lock(mutex_);
    reads_ = true;
    changed_.notify_all();
  }
  void GoAway() {
    const MutexLock lock(mutex_);
    gone_ = true;
    changed_.notify_all();
  }
  void WaitUntilAWriteWaits() {
    MutexLock lock(mutex_);
    changed_.wait(lock.native(), [this] { return waiting_; });
  }
  std::vector<std::string> got() {
    const MutexLock lock(mutex_);
    return got_;
  }

 private:
  bool Write(const google::protobuf::Message& message) {
    MutexLock lock(mutex_);
    waiting_ = true;
    changed_.notify_all();
    changed_.wait(lock.native(), [this] { return reads_ || gone_; });
    waiting_ = false;
    if (!gone_) {
      got_.push_back(static_cast<const google::protobuf::StringValue&>(message).value());
    }
    return !gone_;
  }

  Mutex mutex_;
  std::condition_variable changed_;
  bool reads_ = false, gone_ = false, waiting_ = false;
  std::vector<std::string> got_;
};

ClientStream::Message Text(const std::string& text) {
  auto message = std::make_unique<google::protobuf::StringValue>();
  message->set_value(text);
  return message;
}

// A job continues whatever its client does; the client gets the latest progress.
TEST(ClientStream, ProgressAndNoticesWaitForNobody) {
  HandClock clock;
  FakeClient client;
  ClientStream stream(client.Call(), clock, 60);
  stream.Notify(Text("begins"));
  client.WaitUntilAWriteWaits();
  for (int i = 0; i < 100'000; ++i) {
    stream.Show(Text(std::to_string(i) + " rows"));
  }
  for (int i = 0; i < 100'000; ++i) {
    stream.Notify(Text("notice"));
  }
  ASSERT_TRUE(stream.Send(Text("done")).ok());
  client.ReadOn();
  stream.Drain();
  const std::vector<std::string> got = client.got();
  ASSERT_GT(got.size(), 3U);
  EXPECT_LT(got.size(), 5'000U) << "bounded";
  EXPECT_EQ(got[0], "begins");
  EXPECT_EQ(got[1], "99999 rows");
  EXPECT_EQ(got[2], "notice");
  EXPECT_EQ(got.back(), "done");
}

TEST(ClientStream, RowsWaitForTheClient) {
  HandClock clock;
  FakeClient client;
  ClientStream stream(client.Call(), clock, 60);
  const std::string megabyte(1 << 20, 'x');
  std::atomic<int> sent = 0;
  auto rows = std::async(std::launch::async, [&] {
    for (int i = 0; i < 100; ++i) {
      if (!stream.Send(Text(megabyte)).ok()) {
        return false;
      }
      ++sent;
    }
    return true;
  });
  client.WaitUntilAWriteWaits();
  EXPECT_EQ(rows.wait_for(std::chrono::milliseconds(100)), std::future_status::timeout);
  EXPECT_LE(sent, 8) << "megabytes in memory for a client that does not read";
  client.ReadOn();
  EXPECT_TRUE(rows.get());
  stream.Drain();
  EXPECT_EQ(client.got().size(), 100U);
}

TEST(ClientStream, WhoTakesNoMessageIsCutOff) {
  HandClock clock;
  FakeClient client;
  ClientStream stream(client.Call(), clock, 60);
  ASSERT_TRUE(stream.Send(Text("rows")).ok());
  client.WaitUntilAWriteWaits();
  clock.Advance(std::chrono::seconds(59));
  EXPECT_FALSE(stream.IsGone());
  clock.Advance(std::chrono::seconds(2));
  EXPECT_TRUE(stream.IsGone());
  const Status status = stream.Send(Text("more"));
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message(), "the client took no message for 60 seconds");
  stream.Drain();  // returns
  EXPECT_TRUE(client.got().empty());
}

// Time counts only while a message waits.
TEST(ClientStream, ASilentScriptIsNoSlowClient) {
  HandClock clock;
  FakeClient client;
  client.ReadOn();
  ClientStream stream(client.Call(), clock, 60);
  stream.Notify(Text("begins"));
  stream.Drain();
  clock.Advance(std::chrono::seconds(100'000));
  EXPECT_FALSE(stream.IsGone());
  EXPECT_TRUE(stream.Send(Text("rows")).ok());
}

TEST(ClientStream, AClientThatGoesAwayFreesWhoWaitsForIt) {
  HandClock clock;
  FakeClient client;
  ClientStream stream(client.Call(), clock, 60);
  auto rows = std::async(std::launch::async, [&] {
    const std::string megabyte(1 << 20, 'x');
    Status status;
    while (status.ok()) {
      status = stream.Send(Text(megabyte));
    }
    return status;
  });
  client.WaitUntilAWriteWaits();
  client.GoAway();
  EXPECT_EQ(rows.get().message(), "the client went away");
  stream.Drain();
}

}  // namespace
}  // namespace sluice::server
