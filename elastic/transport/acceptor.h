#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "elastic/transport/socket.h"

namespace sluice::elastic {

// Accepts the connections of a server, on a thread of its own, and hands each on when the other end
// has sent something, so that a silent connection costs the server nothing. Only a limited number
// of silent ones are kept, for a limited time; a new one replaces the oldest of the address that
// has the most. With more connections than the process has descriptors for, a new one waits a
// moment for one without a call to be closed. At a local address only processes of this process's
// own user are admitted.
class Acceptor {
 public:
  // Called on the acceptor's thread; the callee owns the descriptor from then on and closes it.
  using HandOn = std::function<void(Socket connection)>;

  // `address`: "HOST:PORT" (port 0: any; a name listens on all of its addresses), "unix:PATH" or
  // "unix-abstract:NAME".
  static Result<std::unique_ptr<Acceptor>> Listen(const std::string& address);
  ~Acceptor();  // stops accepting; connections that were handed on stay
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // For "HOST:PORT"; 0 for the others.
  int port() const { return port_; }
  // The system accepts connections from Listen on; they wait for this.
  void Start(HandOn hand_on);

 private:
  // Recognisable after its owner has closed it and the number belongs to another file.
  struct HandedOn {
    int descriptor = -1;
    uint64_t inode = 0;
  };
  struct Waiting {
    Socket socket;
    std::string network;  // NetworkOf its address
    TimePoint since;
    bool spoke = false;  // and there was no room for it
  };

  Acceptor() = default;
  Status ListenLocally(std::string_view name, bool abstract);
  Status ListenOn(const std::string& host, const std::string& port);
  void Run();
  void AcceptFrom(const Socket& listener);
  void GiveUpOne();  // of those that wait
  void HandOnReadable(const std::vector<bool>& readable);
  bool HasRoom();
  void DropOverdue(TimePoint now);

  SteadyClock clock_;
  std::vector<Socket> listeners_;
  bool local_ = false;
  int port_ = 0;
  HandOn hand_on_;
  Socket wake_;                 // an eventfd: the thread ends
  std::list<Waiting> waiting_;  // to be handed on; oldest first
  std::vector<HandedOn> handed_on_;
  bool full_ = false;    // reported once, not for each
  std::jthread thread_;  // last: uses the members above
};

}  // namespace sluice::elastic
