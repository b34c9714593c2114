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

// What TLS needs of a job's key, at either end. Thread-safe.
class Encryption {
 public:
  // nullptr: the key does not encrypt. An error: its pair is damaged.
  static Result<std::shared_ptr<const Encryption>> Make(const JobKey& key);
  virtual ~Encryption() = default;
};

// A socket between two processes of a job, as it is or with TLS. Non-blocking; one thread.
class Connection {
 public:
  Connection();  // none
  ~Connection();
  Connection(Connection&& other) noexcept;
  Connection& operator=(Connection&& other) noexcept;
  // `encryption` may be null, and then this waits for nothing. `accepted`: it was not made at this
  // end. Unavailable: the other end is not one of the job, or was not heard until then.
  static Result<Connection> Open(Socket socket, const Encryption* encryption, bool accepted,
                                 std::chrono::steady_clock::time_point until);

  bool open() const { return socket_.open(); }
  int descriptor() const { return socket_.descriptor(); }
  // How many bytes; 0: there is no room, or nothing, for now; -1: the other end has gone. What was
  // given to a Send that found no room is given to the next one, too.
  ptrdiff_t Send(std::span<const iovec> pieces);
  ptrdiff_t Receive(std::span<std::byte> room);
  // Something can be received that poll does not know of.
  bool holds_more() const;

 private:
  struct Session;
  Socket socket_;
  std::unique_ptr<Session> session_;  // null: no TLS
};

}  // namespace sluice::elastic
