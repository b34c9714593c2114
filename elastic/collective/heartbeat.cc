#include "elastic/collective/heartbeat.h"

#include <sys/socket.h>

#include <cerrno>
#include <chrono>

namespace sluice::elastic {
namespace {

constexpr auto kBeat = std::chrono::milliseconds(100);
constexpr int kReadsAtOnce = 64;

}  // namespace

Heartbeat::Heartbeat(std::vector<Socket> sockets, double silence_seconds)
    : sockets_(std::move(sockets)),
      silence_seconds_(silence_seconds),
      heard_(sockets_.size(), clock_.Now()),
      thread_([this](const std::stop_token& stop) { Run(stop); }) {}

Heartbeat::~Heartbeat() = default;

void Heartbeat::Run(const std::stop_token& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  do {
    Beat();
  } while (!wake_.wait_for(lock, stop, kBeat, [&] { return stop.stop_requested(); }));
}

void Heartbeat::Beat() {
  char buffer[64] = {};
  for (size_t rank = 0; rank < sockets_.size(); ++rank) {
    Socket& socket = sockets_[rank];
    if (!socket.open()) {
      continue;
    }
    // A full buffer is as good as a beat; a broken connection shows below.
    [[maybe_unused]] const ssize_t sent =
        send(socket.descriptor(), buffer, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    // So many at a time: a peer that sends without end does not keep the others unheard.
    for (int reads = 0; reads < kReadsAtOnce; ++reads) {
      const ssize_t got = recv(socket.descriptor(), buffer, sizeof(buffer), MSG_DONTWAIT);
      if (got > 0) {
        heard_[rank] = clock_.Now();
        continue;
      }
      if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        socket = Socket();
      }
      break;
    }
    // Judged after reading: a process that slept has heard nothing, and that is not its peers'
    // fault.
    if (socket.open() && SecondsBetween(heard_[rank], clock_.Now()) > silence_seconds_) {
      silent_.store(Rank::At(rank), std::memory_order_release);
    }
  }
}

}  // namespace sluice::elastic
