#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "base/status.h"

namespace sluice::elastic {

// A stream socket, closed by its destructor. Non-blocking. One thread.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Socket();
  int descriptor() const { return descriptor_; }
  bool open() const { return descriptor_ >= 0; }
  // The same connection, for another thread, which ends it by shutdown(). Not open: the process may
  // open no further descriptor.
  static Socket Duplicate(int descriptor);
  // The receiver of the descriptor must close it.
  int Release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

// Waits until poll reports one of these events. False: not in time. max(): there is no limit.
bool WaitFor(int descriptor, short events, std::chrono::steady_clock::time_point until);

// Unavailable: `what`, and the system's message for the last call.
Status SystemError(const std::string& what);

// Whether the process at the other end of a local connection runs as this process's user. An
// abstract name is visible to every process, and any of them may connect to it.
bool IsOfOwnUser(const Socket& socket);

// Where the other members of a world reach this process: "unix:NAME" in the kernel's abstract
// namespace (no file to clean up) or "tcp:HOST:PORT".
class Listener {
 public:
  enum class Kind { kUnix, kTcp };
  // `host`: a numeric address of this machine (kTcp).
  static Result<Listener> Open(Kind kind, const std::string& host);
  // If all members listen on the loopback address, they are on one machine.
  static Kind KindFor(const std::string& host);

  const std::string& address() const { return address_; }
  int descriptor() const { return socket_.descriptor(); }
  // Not open if no connection waits, or if it is from another user's process.
  Socket Accept() const;

 private:
  Socket socket_;
  std::string address_;
};

// Connects to a server's address, as Acceptor::Listen has it, with a numeric host; the connection
// may still be in progress (poll for writing).
Result<Socket> ConnectToServer(const std::string& address);
// Large buffers; and, between machines, an error within some seconds of the other end's loss, which
// says nothing. The system grants what it allows.
void TuneServerConnection(const Socket& socket);

// Connects to a Listener's address; the connection may still be in progress (poll for writing).
Result<Socket> ConnectTo(const std::string& address);

}  // namespace sluice::elastic
