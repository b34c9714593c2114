#include "executor/local/room_server.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "catalog/sha256.h"
#include "catalog/source_url.h"
#include "elastic/transport/status_codec_internal.h"
#include "executor/local/room.pb.h"
#include "executor/processes/packets_internal.h"
#include "executor/processes/slot_arbiter.h"

namespace sluice::executor {
namespace {

// Interval of trying to take over the name of a gateway that has ended.
constexpr std::chrono::milliseconds kLookForName{500};

Room::Request RequestOf(const RoomState& state) {
  Room::Request request;
  request.name = state.name();
  request.min = state.min();
  request.max = state.max();
  request.owner = state.owner();
  request.priority = state.priority();
  request.cpu = state.cpu();
  request.memory_bytes = state.memory_bytes();
  request.servers = state.servers();
  request.server_memory_bytes = state.server_memory_bytes();
  return request;
}

SlotArbiter::Holdings HoldingsOf(const RoomState& state) {
  SlotArbiter::Holdings holdings;
  holdings.live.assign(state.live().begin(), state.live().end());
  holdings.out_of_memory = state.out_of_memory();
  holdings.granted = state.granted();
  return holdings;
}

class SocketRoomServer final : public RoomServer {
 public:
  SocketRoomServer(std::string name, SlotArbiter& arbiter, PollWaker waker)
      : name_(std::move(name)), arbiter_(arbiter), waker_(std::move(waker)) {
    Listen();
    thread_ = std::jthread([this](const std::stop_token& end) { Serve(end); });
  }
  ~SocketRoomServer() override {
    thread_.request_stop();
    waker_.Wake();
    thread_.join();
    for (Guest& guest : guests_) {
      LeaveRoom(guest);
    }
  }

 private:
  struct Guest {
    PacketSocket socket;
    std::optional<int64_t> job;  // the arbiter's number
  };

  void Listen() {
    auto listener = PacketListener::Open(name_);
    if (listener.ok()) {
      listener_ = *std::move(listener);
    } else if (listener.status().code() != Code::kAlreadyExists) {
      log::Warn("jobs are granted no room: {}", listener.status().ToString());
    } else if (!std::exchange(knows_whose_, true) &&
               PacketSocket::Connect(name_).status().code() == Code::kPermissionDenied) {
      log::Warn(
          "another user's process has taken the name under which jobs ask for their room, @{}: "
          "until it ends each job has its fewest workers",
          name_);
    }
  }

  void Serve(const std::stop_token& end) {
    while (!end.stop_requested()) {
      // Exceptions are logged by Guarded, and no job loses its room.
      [[maybe_unused]] const Status turned =
          Guarded("granting room to jobs", [this]() -> Status { return Turn(); });
    }
  }

  Status Turn() {
    std::vector<int> descriptors{waker_.descriptor()};
    std::optional<std::chrono::steady_clock::time_point> until;
    if (listener_.open()) {
      descriptors.push_back(listener_.descriptor());
    } else {
      until = std::chrono::steady_clock::now() + kLookForName;
    }
    for (const Guest& guest : guests_) {
      descriptors.push_back(guest.socket.descriptor());
    }
    PollForReading(descriptors, until);
    waker_.Clear();
    if (!listener_.open()) {
      Listen();
    } else if (PacketSocket socket = listener_.Accept(); socket.open()) {
      guests_.push_back({std::move(socket), std::nullopt});
    }
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const bool stays = Hear(*guest);
      if (!stays) {
        LeaveRoom(*guest);
      }
      guest = stays ? std::next(guest) : guests_.erase(guest);
    }
    return OkStatus();
  }

  // False: the guest has disconnected.
  bool Hear(Guest& guest) {
    for (;;) {
      const auto packet = guest.socket.Receive();
      if (!packet.ok()) {
        return false;
      }
      if (!packet->has_value()) {
        return true;
      }
      RoomState state;
      if (!state.ParseFromString(**packet)) {
        return false;
      }
      if (guest.job.has_value()) {
        arbiter_.SetWorkers(*guest.job, HoldingsOf(state));
      } else if (!EnterRoom(guest, state)) {
        return false;
      }
      if (state.has_report()) {
        arbiter_.Report(*guest.job, state.report().workers(), state.report().rows_per_second(),
                        state.report().rows_left());
      }
    }
  }

  bool EnterRoom(Guest& guest, const RoomState& state) {
    // Called on the arbiter's thread, until the guest has left the room. A guest that does not
    // receive a grant reconnects and says what it has.
    const auto on_grant = [&socket = guest.socket](const Room::Grant& grant) {
      RoomAnswer answer;
      answer.mutable_grant()->set_workers(grant.workers);
      answer.mutable_grant()->set_wanted(grant.wanted);
      answer.mutable_grant()->set_reason(grant.reason);
      if (!socket.Send(answer.SerializeAsString())) {
        socket.HangUp();
      }
    };
    RoomAnswer answer;
    answer.mutable_entered();
    if (state.granted() > 0) {
      guest.job = arbiter_.Return(RequestOf(state), HoldingsOf(state), on_grant);
      log::Info("a job has come back job={} workers={}", state.name(), state.granted());
    } else {
      const auto job = arbiter_.Enter(RequestOf(state), on_grant);
      if (job.ok()) {
        guest.job = *job;
      } else {
        elastic::ToProto(job.status(), answer.mutable_refused());
      }
    }
    return guest.socket.Send(answer.SerializeAsString()) && guest.job.has_value();
  }

  void LeaveRoom(Guest& guest) {
    if (guest.job.has_value()) {
      arbiter_.Leave(*guest.job);
      guest.job.reset();
    }
  }

  const std::string name_;
  SlotArbiter& arbiter_;
  const PollWaker waker_;
  PacketListener listener_;  // used by the thread, like the guests
  std::list<Guest> guests_;
  bool knows_whose_ = false;  // the name is, since it was first found taken
  std::jthread thread_;       // last: uses the others
};

}  // namespace

Result<std::unique_ptr<RoomServer>> RoomServer::Start(const std::string& name,
                                                      SlotArbiter& arbiter) {
  ASSIGN_OR_RETURN(PollWaker waker, PollWaker::Make());
  return std::unique_ptr<RoomServer>(
      std::make_unique<SocketRoomServer>(name, arbiter, std::move(waker)));
}

std::string RoomNameOf(std::string_view source_url) {
  const Result<catalog::SourceUrl> url = catalog::ParseSourceUrl(source_url);
  if (!url.ok()) {
    return "";
  }
  std::string place = url.value().path;
  if (url.value().kind == catalog::SourceUrl::Kind::kPostgres) {
    // The same for every login.
    place = catalog::WithRole(catalog::WithoutPasswordFile(url.value().text), "sluice");
  } else {
    std::error_code error;
    const std::filesystem::path whole = std::filesystem::weakly_canonical(place, error);
    place = error ? place : whole.string();
  }
  catalog::Sha256 digest;
  digest.Add(fmt::format("{} {}", geteuid(), place));
  return "sluice-room-" + digest.Hex().substr(0, 32);
}

}  // namespace sluice::executor
