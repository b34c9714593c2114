#include "executor/local/room_link.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/mutex.h"
#include "elastic/transport/status_codec_internal.h"
#include "executor/local/room.pb.h"
#include "executor/processes/packets_internal.h"

namespace sluice::executor {
namespace {

// Interval of looking for the next gateway.
constexpr std::chrono::milliseconds kLookForGateway{200};
// A live gateway answers at once; one that hangs counts as gone.
constexpr std::chrono::seconds kAnswerPatience{5};

class SocketRoomLink final : public Room {
 public:
  SocketRoomLink(std::string name, const RoomSize& size, PollWaker waker)
      : name_(std::move(name)), size_(WithMachine(size)), waker_(std::move(waker)) {
    thread_ = std::jthread([this](const std::stop_token& end) { Run(end); });
  }
  ~SocketRoomLink() override {
    thread_.request_stop();
    waker_.Wake();
  }

  Result<int64_t> Enter(const Request& request, OnGrant on_grant) override {
    {
      const MutexLock lock(mutex_);
      if (job_.has_value()) {
        return Internal("a process has room for one job at a time");
      }
      job_ = Job{request, std::move(on_grant), {}, {}, 0};
      answer_.reset();
    }
    // A gateway's answer, if there is one; a refusal is the job's error.
    Result<PacketSocket> socket = PacketSocket::Connect(name_);
    MutexLock lock(mutex_);
    if (socket.ok()) {
      socket_ = *std::move(socket);
      SendReport(nullptr);
      waker_.Wake();
      answered_.wait_for(lock.native(), kAnswerPatience,
                         [this]() REQUIRES(mutex_) { return answer_.has_value(); });
      if (answer_.has_value() && !answer_->ok()) {
        const Status refused = *answer_;
        Forget();
        return refused;
      }
      if (answer_.has_value()) {
        return ++number_;
      }
      Disconnect();
    }
    const Status fits = CheckFits(request, size_);
    if (!fits.ok()) {
      Forget();
      return fits;
    }
    // One of another user only keeps the name: jobs that each took the machine would be too many.
    const bool name_is_taken = socket.status().code() == Code::kPermissionDenied;
    const auto slots = name_is_taken
                           ? request.min
                           : static_cast<uint32_t>(size_.slots / std::max(request.cpu, 0.001));
    Take(
        {std::clamp(slots, request.min, request.max), std::clamp(slots, request.min, request.max)});
    return ++number_;
  }

  void Leave(int64_t /*job*/) override {
    const MutexLock lock(mutex_);
    Forget();
    waker_.Wake();
  }

  int64_t WorkerStarted(int64_t /*job*/) override {
    const MutexLock lock(mutex_);
    const int64_t memory = MemoryOfWorker(job_->request, job_->out_of_memory, size_);
    job_->live.insert(memory);
    SendReport(nullptr);
    return memory;
  }
  void WorkerEnded(int64_t /*job*/, int64_t memory_bytes, bool out_of_memory) override {
    const MutexLock lock(mutex_);
    if (!job_.has_value()) {
      return;
    }
    const auto one = job_->live.find(memory_bytes);
    if (one != job_->live.end()) {
      job_->live.erase(one);
    }
    job_->out_of_memory += out_of_memory ? 1 : 0;
    SendReport(nullptr);
  }
  void Report(int64_t /*job*/, uint32_t workers, double rows_per_second,
              double rows_left) override {
    RoomState::Report report;
    report.set_workers(workers);
    report.set_rows_per_second(rows_per_second);
    report.set_rows_left(rows_left);
    const MutexLock lock(mutex_);
    SendReport(&report);
  }
  int64_t memory_bytes() const override { return size_.memory_bytes; }

 private:
  struct Job {
    Request request;
    OnGrant on_grant;
    std::multiset<int64_t> live;
    int out_of_memory = 0;
    uint32_t granted = 0;
  };

  void SendReport(const RoomState::Report* report) REQUIRES(mutex_) {
    if (!socket_.open() || !job_.has_value()) {
      return;
    }
    RoomState state;
    const Request& request = job_->request;
    state.set_name(request.name);
    state.set_min(request.min);
    state.set_max(request.max);
    state.set_owner(request.owner);
    state.set_priority(request.priority);
    state.set_cpu(request.cpu);
    state.set_memory_bytes(request.memory_bytes);
    state.set_servers(request.servers);
    state.set_server_memory_bytes(request.server_memory_bytes);
    for (const int64_t memory : job_->live) {
      state.add_live(memory);
    }
    state.set_out_of_memory(job_->out_of_memory);
    state.set_granted(job_->granted);
    if (report != nullptr) {
      *state.mutable_report() = *report;
    }
    if (!socket_.Send(state.SerializeAsString()) && report == nullptr) {
      Disconnect();  // the next connection begins with the complete state
    }
  }

  void Take(const Grant& grant) REQUIRES(mutex_) {
    if (job_.has_value()) {
      job_->granted = grant.workers;
      job_->on_grant(grant);
    }
  }
  void Disconnect() REQUIRES(mutex_) { socket_ = PacketSocket(); }
  void Forget() REQUIRES(mutex_) {
    job_.reset();
    Disconnect();
  }

  void Run(const std::stop_token& end) {
    while (!end.stop_requested()) {
      // Logged by Guarded; the next turn looks again.
      [[maybe_unused]] const Status turned =
          Guarded("listening to the gateway", [this]() -> Status { return Turn(); });
    }
  }

  Status Turn() {
    std::vector<int> descriptors{waker_.descriptor()};
    bool looks = false;
    {
      const MutexLock lock(mutex_);
      if (socket_.open()) {
        descriptors.push_back(socket_.descriptor());
      }
      looks = !socket_.open() && job_.has_value();
    }
    PollForReading(
        descriptors,
        looks ? std::optional(std::chrono::steady_clock::now() + kLookForGateway) : std::nullopt);
    waker_.Clear();
    const MutexLock lock(mutex_);
    if (socket_.open()) {
      Hear();
    } else if (looks && job_.has_value()) {
      Result<PacketSocket> socket = PacketSocket::Connect(name_);
      if (socket.ok()) {
        socket_ = *std::move(socket);
        SendReport(nullptr);
      }
    }
    return OkStatus();
  }

  void Hear() REQUIRES(mutex_) {
    while (socket_.open()) {
      const auto packet = socket_.Receive();
      if (!packet.ok()) {
        Disconnect();
        return;
      }
      RoomAnswer answer;
      if (!packet->has_value()) {
        return;
      }
      if (!answer.ParseFromString(**packet)) {
        Disconnect();
        return;
      }
      if (answer.has_grant()) {
        answer_ = OkStatus();
        Take({answer.grant().workers(), answer.grant().wanted(), answer.grant().reason()});
      } else {
        answer_ = answer.has_refused() ? elastic::FromProto(answer.refused()) : OkStatus();
      }
      answered_.notify_all();
    }
  }

  const std::string name_;
  const RoomSize size_;
  const PollWaker waker_;
  Mutex mutex_;
  std::condition_variable_any answered_;
  std::optional<Job> job_ GUARDED_BY(mutex_);
  PacketSocket socket_ GUARDED_BY(mutex_);
  std::optional<Status> answer_ GUARDED_BY(mutex_);
  int64_t number_ GUARDED_BY(mutex_) = 0;
  std::jthread thread_;  // last: uses the others
};

}  // namespace

Result<std::unique_ptr<Room>> RoomLink::Make(const std::string& name, const RoomSize& size) {
  ASSIGN_OR_RETURN(PollWaker waker, PollWaker::Make());
  return std::unique_ptr<Room>(std::make_unique<SocketRoomLink>(name, size, std::move(waker)));
}

}  // namespace sluice::executor
