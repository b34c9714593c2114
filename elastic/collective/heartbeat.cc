#include "elastic/collective/heartbeat.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <utility>

namespace sluice::elastic {
namespace {

constexpr auto kBeat = std::chrono::milliseconds(100);
constexpr int kReadsAtOnce = 64;

}  // namespace

Heartbeat::Heartbeat(std::vector<Connection> peers, double silence_seconds)
    : peers_(std::move(peers)),
      silence_seconds_(silence_seconds),
      heard_(peers_.size(), clock_.Now()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Heartbeat::~Heartbeat() = default;

void Heartbeat::Run(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  do {
    SendHeartbeat();
  } while (!wake_.wait_for(lock, stop, kBeat, [&] { return stop.stop_requested(); }));
}

void Heartbeat::SendHeartbeat() {
  std::byte buffer[64] = {};
  const iovec beat{buffer, 1};
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    Connection& peer = peers_[rank];
    if (!peer.open()) {
      continue;
    }
    // A full buffer serves as a beat; a broken connection is detected below.
    static_cast<void>(peer.Send({&beat, 1}));
    // A limited number at a time, so that a peer that sends without end does not keep the others
    // from being heard.
    for (int reads = 0; reads < kReadsAtOnce; ++reads) {
      const ptrdiff_t got = peer.Receive(buffer);
      if (got > 0) {
        heard_[rank] = clock_.Now();
        continue;
      }
      if (got < 0) {
        peer = Connection();
      }
      break;
    }
    // Judged after reading: a process that slept has received nothing, which is not its peers'
    // fault.
    if (peer.open() && SecondsBetween(heard_[rank], clock_.Now()) > silence_seconds_) {
      silent_.store(Rank::At(rank), std::memory_order_release);
    }
  }
}

}  // namespace sluice::elastic
