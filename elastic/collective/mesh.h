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

// The connections between the members of one world: each with each. One thread.
class Mesh {
 public:
  struct Options {
    WorldId world = kNoWorld;
    Rank rank = Rank::First();
    std::vector<std::string> addresses;  // by rank; the own one is not used
    JobKey key;                          // of the job; strangers are turned away
    // Shorter than the silence: who still waits for others has no heartbeat yet.
    double open_seconds = 0.6;
    double silence_seconds = 0.7;
  };
  // Connects to the older members and waits for the younger ones. Unavailable: somebody did not
  // come in time, or this world is over already; Cancelled: `stop`.
  static Result<std::unique_ptr<Mesh>> Open(const Options& options, const Listener& listener,
                                            std::stop_token stop);

  // What goes to a peer and what comes from it. Nothing is copied: memory must stay as it is until
  // Exchange returns.
  struct Traffic {
    std::vector<std::span<const std::byte>> out;
    // Where the next bytes from this peer go, asked when all before have come; empty: that was all.
    std::function<Result<std::span<std::byte>>()> next;
  };
  // Sends and receives everything, with all peers at once. `traffic`: by rank, the own is ignored.
  // Unavailable as soon as a peer's connection closes before it was done, or a peer has been silent
  // for silence_seconds; then some of it may have arrived. Cancelled: `stop`.
  Status Exchange(std::vector<Traffic>* traffic);

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
  Status Connect(std::vector<Connection>* heartbeats);
  Status AcceptYounger(const Listener& listener, std::vector<Connection>* heartbeats);
  Status Interrupted() const;

  const Options options_;
  const std::stop_token stop_;
  std::shared_ptr<const Encryption> encryption_;  // null: none
  std::vector<Connection> peers_;                 // by rank
  std::unique_ptr<Heartbeat> heartbeat_;
};

}  // namespace sluice::elastic
