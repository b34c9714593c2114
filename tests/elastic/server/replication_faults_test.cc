#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "elastic/rpc/elastic.pb.h"
#include "elastic/transport/acceptor.h"
#include "elastic/transport/message_stream_internal.h"
#include "tests/elastic/server/replication_steps.h"
#include "tests/support/eventually.h"

// A primary whose follower misbehaves.
namespace sluice::elastic {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr ServerId kPrimary(0);
constexpr ServerId kFollower(1);

// What a follower does with a connection.
enum class Fault {
  kNone,            // takes each shipment
  kRefuses,         // each shipment
  kSaysNothing,     // not even that the primary belongs to the job
  kReadsNothing,    // after that
  kAnswersNothing,  // after a shipment
  kHangsInAnswer,   // after half of it
  kClosesAtOnce,
  kClosesInAdmission,
  kClosesOnceAdmitted,
  kClosesInShipment,
  kClosesBeforeAnswer,
  kClosesInAnswer,
  kNoAdmission,  // bytes that are no frame
  kNoAnswer,
  kLongAnswer,
  kUnreadableAnswer,
  kError,
};

// In place of a parameter server; a test says what it does with the next connections.
class FakeFollower {
 public:
  explicit FakeFollower(const std::string& address)
      : acceptor_(Acceptor::Listen(address).value()), address_(address) {
    if (acceptor_->port() != 0) {
      address_ = "127.0.0.1:" + std::to_string(acceptor_->port());
    }
    acceptor_->Start([this](Socket socket) {
      const std::lock_guard lock(mutex_);
      const Fault fault = faults_.empty() ? last_ : faults_.front();
      if (!faults_.empty()) {
        faults_.erase(faults_.begin());
      }
      controls_.push_back(Socket::Duplicate(socket.descriptor()));
      threads_.emplace_back([this, fault, socket = std::move(socket)]() mutable {
        const Socket control = Socket::Duplicate(socket.descriptor());
        Meet(std::move(socket), fault);
        shutdown(control.descriptor(), SHUT_RDWR);
      });
    });
  }
  ~FakeFollower() {
    acceptor_.reset();
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
      for (const Socket& control : controls_) {
        shutdown(control.descriptor(), SHUT_RDWR);
      }
      changed_.notify_all();
    }
    threads_.clear();
  }
  const std::string& address() const { return address_; }
  // The next connections meet these faults, one each, and all later ones the last.
  void Will(std::vector<Fault> faults) {
    const std::lock_guard lock(mutex_);
    last_ = faults.back();
    faults_ = std::move(faults);
    hanging_ = 0;
  }
  void WaitUntilItHangs(int times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return hanging_ >= times; });
  }
  int shipments() const { return shipments_; }
  // Of the entries that it has acknowledged.
  std::vector<uint64_t> taken() {
    const std::lock_guard lock(mutex_);
    return taken_;
  }

 private:
  void Hang() {
    std::unique_lock lock(mutex_);
    ++hanging_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return over_; });
  }
  static void Write(const Socket& socket, std::string_view bytes) {
    (void)send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  static std::string Frame(uint32_t length, uint32_t kind, std::string_view content) {
    std::string bytes(2 * sizeof(uint32_t), '\0');
    std::memcpy(bytes.data(), &length, sizeof(length));
    std::memcpy(bytes.data() + sizeof(length), &kind, sizeof(kind));
    return bytes.append(content);
  }
  void Meet(Socket socket, Fault fault) {
    const Socket raw = Socket::Duplicate(socket.descriptor());
    switch (fault) {
      case Fault::kSaysNothing:
        return Hang();
      case Fault::kClosesAtOnce:
        return;
      case Fault::kClosesInAdmission:
        return Write(raw, Frame(9, 0, "half"));
      case Fault::kNoAdmission:
        return Write(raw, std::string(100, '\xff'));
      default:
        break;
    }
    const auto until = steady_clock::now() + seconds(10);
    Result<MessageStream> stream =
        MessageStream::Accept(std::move(socket), JobKey{kToken}, nullptr, until);
    if (!stream.ok() || fault == Fault::kClosesOnceAdmitted) {
      return;
    }
    if (fault == Fault::kReadsNothing) {
      return Hang();
    }
    if (fault == Fault::kClosesInShipment) {
      // Nothing announces itself in shared memory to an end that does not read.
      WaitFor(raw.descriptor(), POLLIN, steady_clock::now() + std::chrono::milliseconds(50));
      return;
    }
    Serve(*stream, raw, fault);
  }
  void Serve(MessageStream& stream, const Socket& raw, Fault fault) {
    ExchangeRequest request;
    while (stream.Receive(&request, MessageStream::Deadline::max()).ok()) {
      ++shipments_;
      switch (fault) {
        case Fault::kAnswersNothing:
          return Hang();
        case Fault::kHangsInAnswer:
          Write(raw, Frame(9, 0, "half"));
          return Hang();
        case Fault::kClosesInAnswer:
          return Write(raw, Frame(9, 0, "half"));
        case Fault::kNoAnswer:
          return Write(raw, std::string(100, '\xff'));
        case Fault::kLongAnswer:
          return Write(raw, Frame(UINT32_MAX, 0, "long"));
        case Fault::kUnreadableAnswer:
          return Write(raw, Frame(4, 0, "\xff\xff\xff\xff"));
        case Fault::kClosesBeforeAnswer:
          return;
        case Fault::kError:
          (void)stream.SendError(Internal("of this follower"), steady_clock::now() + seconds(10));
          return;
        default:
          break;
      }
      ExchangeReply reply;
      reply.set_refused(fault == Fault::kRefuses);
      if (fault == Fault::kNone) {
        const std::lock_guard lock(mutex_);
        for (const ReplicaEntry& entry : request.shipment().entries()) {
          taken_.push_back(entry.sequence());
        }
      }
      if (!stream.Send(reply, steady_clock::now() + seconds(10)).ok()) {
        return;
      }
    }
  }

  std::unique_ptr<Acceptor> acceptor_;
  std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Fault> faults_;
  Fault last_ = Fault::kNone;
  int hanging_ = 0;
  bool over_ = false;
  std::atomic<int> shipments_ = 0;
  std::vector<uint64_t> taken_;
  std::list<Socket> controls_;
  std::list<std::jthread> threads_;
};

// Through the loopback device, or through memory that both ends share.
class ReplicationFaults : public ReplicationTest, public ::testing::WithParamInterface<bool> {
 protected:
  ReplicationFaults() : follower_(Address()) {
    StartServer(kPrimary);
    alone_ = PlaceEvenly(Addresses(), kPartitions, false);
    followed_ = alone_;
    followed_.servers.emplace(kFollower, follower_.address());
    followed_.backup.assign(kPartitions, kFollower);
  }
  ~ReplicationFaults() override { stop_.request_stop(); }
  static std::string Address() {
    static std::atomic<int> number = 0;
    return GetParam() ? "unix-abstract:sluice-test-follower-" + std::to_string(getpid()) + "-" +
                            std::to_string(++number)
                      : "127.0.0.1:0";
  }
  // A newer map; the follower is not told of it.
  void Change(PartitionMap map, ParameterControl::Phase phase = ParameterControl::Phase::kAdopt) {
    map.version = version_;
    version_ = version_.Next();
    Install(map, phase, kFollower);
  }
  std::jthread Pusher(int64_t batch) {
    return std::jthread([this, batch] { pushed_ = PushBatch(*Worker(), batch); });
  }

  FakeFollower follower_;
  PartitionMap alone_, followed_;
  MapVersion version_ = MapVersion(1);
  Status pushed_;
};

INSTANTIATE_TEST_SUITE_P(, ReplicationFaults, ::testing::Bool(), [](const auto& each) {
  return each.param ? std::string("Memory") : std::string("Loopback");
});

// A shipment waits for 20 seconds; the map that leaves the follower out does not.
TEST_P(ReplicationFaults, AFollowerThatHangsIsCutOffAtOnce) {
  follower_.Will({Fault::kNone});
  Change(followed_, ParameterControl::Phase::kCreate);
  int64_t batch = 0;
  for (const Fault fault : {Fault::kReadsNothing, Fault::kAnswersNothing, Fault::kHangsInAnswer}) {
    follower_.Will({fault});
    Change(alone_);
    Change(followed_);
    const std::jthread pusher = Pusher(batch++);
    follower_.WaitUntilItHangs(1);
    EXPECT_TRUE(Eventually([&] { return servers_[kPrimary].shard->version(0) >= batch; }));
    const auto begin = steady_clock::now();
    Change(alone_);
    EXPECT_LT(steady_clock::now() - begin, seconds(5)) << static_cast<int>(fault);
  }
  EXPECT_TRUE(pushed_.ok()) << pushed_.ToString();
  EXPECT_EQ(servers_[kPrimary].shard->version(0), batch);
}

// As where a node has lost its power: each attempt to connect may last two seconds.
TEST_P(ReplicationFaults, MapsDoNotWaitForAConnection) {
  follower_.Will({Fault::kSaysNothing});
  Change(followed_, ParameterControl::Phase::kCreate);
  const auto begin = steady_clock::now();
  for (int i = 1; i <= 10; ++i) {
    follower_.WaitUntilItHangs(i);
    Change(alone_);
    Change(followed_);
  }
  follower_.WaitUntilItHangs(11);
  servers_[kPrimary].door.reset();
  EXPECT_LT(steady_clock::now() - begin, seconds(10));
}

TEST_P(ReplicationFaults, APushOutlivesWhateverAFollowerDoes) {
  follower_.Will({Fault::kNone});
  Change(followed_, ParameterControl::Phase::kCreate);
  int64_t batch = 0;
  for (const Fault fault :
       {Fault::kClosesAtOnce, Fault::kClosesInAdmission, Fault::kClosesOnceAdmitted,
        Fault::kClosesInShipment, Fault::kClosesBeforeAnswer, Fault::kClosesInAnswer,
        Fault::kNoAdmission, Fault::kNoAnswer, Fault::kLongAnswer, Fault::kUnreadableAnswer,
        Fault::kError}) {
    follower_.Will({fault, fault, Fault::kNone});
    Change(alone_);
    Change(followed_);
    const Status pushed = PushBatch(*Worker(), batch++);
    EXPECT_TRUE(pushed.ok()) << static_cast<int>(fault) << ": " << pushed.ToString();
    EXPECT_FALSE(follower_.taken().empty());
  }
  EXPECT_EQ(servers_[kPrimary].shard->version(0), batch);
  const std::vector<uint64_t> taken = follower_.taken();
  EXPECT_EQ(taken.size(), static_cast<size_t>(batch));
  EXPECT_TRUE(std::is_sorted(taken.begin(), taken.end()));
}

TEST_P(ReplicationFaults, AServerThatIsRefusedShipsNoMore) {
  follower_.Will({Fault::kRefuses});
  Change(followed_, ParameterControl::Phase::kCreate);
  when_asked_ = [this] { stop_.request_stop(); };
  EXPECT_FALSE(PushBatch(*Worker(), 0).ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ(follower_.shipments(), 1);
}

}  // namespace
}  // namespace sluice::elastic
