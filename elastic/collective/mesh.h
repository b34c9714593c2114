#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/status.h"
#include "elastic/collective/heartbeat.h"
#include "elastic/ids.h"
#include "elastic/transport/connection.h"
#include "elastic/transport/job_key.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// The connections between every two members of one world. One thread.
class Mesh {
 public:
  struct Options {
    WorldId world = kNoWorld;
    Rank rank = Rank::First();
    std::vector<std::string> addresses;  // by rank; this member's own is not used
    JobKey key;                          // of the job; strangers are rejected
    // Shorter than the silence, since a member that still waits for others has no heartbeat yet.
    double open_seconds = 0.6;
    double silence_seconds = 0.7;
  };
  // Connects to the older members and waits for the younger ones. Unavailable: a member did not
  // connect in time, or this world is already over; Cancelled: `stop`.
  static Result<std::unique_ptr<Mesh>> Open(const Options& options, const Listener& listener,
                                            std::stop_token stop);

  // Data to and from one peer. Nothing is copied: memory must stay valid and unchanged until
  // Exchange returns.
  struct Traffic {
    std::vector<std::span<const std::byte>> out;
    // Where the next bytes from this peer go; called when all previous bytes have arrived; empty:
    // complete.
    std::function<Result<std::span<std::byte>>()> next;
  };
  // Sends and receives everything, with all peers at once. `traffic`: by rank, this member's own is
  // ignored. Unavailable as soon as a peer's connection closes before it was done, or a peer has
  // been silent for silence_seconds; then some data may have arrived. Cancelled: `stop`.
  // `meanwhile`, if not empty, runs once, when what has room has been sent.
  Status Exchange(std::vector<Traffic>* traffic, const std::function<void()>& meanwhile = {});

  // A peer that has been silent for too long.
  std::optional<Rank> silent() const {
    return heartbeat_ != nullptr ? heartbeat_->silent() : std::nullopt;
  }
  Rank rank() const { return options_.rank; }
  size_t size() const { return options_.addresses.size(); }
  WorldId world() const { return options_.world; }

 private:
  Mesh(Options options, std::stop_token stop)
      : options_(std::move(options)), stop_(std::move(stop)) {}
  // A connection to another member, and what has been received from it in advance:
  // buffer[taken, received).
  struct Peer {
    Connection connection;
    std::vector<std::byte> buffer;
    size_t taken = 0, received = 0;
  };
  class Flow;
  Status Connect(std::vector<Connection>* heartbeats);
  Status AcceptYounger(const Listener& listener, std::vector<Connection>* heartbeats);
  Status Interrupted() const;

  const Options options_;
  const std::stop_token stop_;
  std::shared_ptr<const Encryption> encryption_;  // null: none
  std::vector<Peer> peers_;                       // by rank
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace sluice::elastic
