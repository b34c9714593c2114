#pragma once

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>

#include "base/status.h"
#include "elastic/transport/job_key.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// The TLS context of a job's key, for either end. Thread-safe.
class Encryption {
 public:
  // nullptr: the key does not encrypt. An error: its pair is damaged.
  static Result<std::shared_ptr<const Encryption>> Make(const JobKey& key);
  virtual ~Encryption() = default;
};

class SharedRings;

// A connection between two processes of a job: a socket, plain or with TLS, or memory that both
// share. Non-blocking; one thread.
class Connection {
 public:
  Connection();  // none
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  // `encryption` may be null, and then this does not wait. `accepted`: the other end opened it.
  // Unavailable: the other end does not belong to the job, or did not answer in time.
  static Result<Connection> Open(Socket socket, const Encryption* encryption, bool accepted,
                                 std::chrono::steady_clock::time_point until);

  // From now on data pass through this memory, and the socket, a plain one, only wakes the ends.
  void UseMemory(SharedRings rings);

  bool open() const { return socket_.open(); }
  int descriptor() const { return socket_.descriptor(); }
  // The number of bytes; 0: no room, or no data, for now; -1: the other end has closed. Data for
  // which a Send found no room must be passed to the next one, too.
  ptrdiff_t Send(std::span<const iovec> pieces);
  ptrdiff_t Receive(std::span<std::byte> room);
  // Data can be received that poll does not report.
  bool holds_more() const;
  // What to poll for after a Send that found no room.
  short room_event() const;

 private:
  struct Session;
  Socket socket_;
  std::unique_ptr<Session> session_;    // null: no TLS
  std::unique_ptr<SharedRings> rings_;  // null: through the socket
};

}  // namespace sluice::elastic
