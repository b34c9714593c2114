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

// Accepts the connections of a server, on a thread of its own, and hands each on when its other end
// has said something: who connects and is silent costs the server nothing. Of those only some are
// kept, for some time; the next one takes the place of the oldest. With more connections than the
// process has descriptors for, a newcomer waits a moment for one that makes no call to be closed.
// At a local address only
// processes of this process's own user are let in.
class Acceptor {
 public:
  // Called by the acceptor's thread; owns the descriptor from then on, and closes it in the end.
  using HandOn = std::function<void(Socket connection)>;

  // `address`: "HOST:PORT" (port 0: any; a name listens on all of its addresses), "unix:PATH" or
  // "unix-abstract:NAME".
  static Result<std::unique_ptr<Acceptor>> Listen(const std::string& address);
  ~Acceptor();  // stops accepting; what was handed on stays
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Of "HOST:PORT"; 0 of the others.
  int port() const { return port_; }
  // Connections are made by the system from Listen on, and wait for this.
  void Start(HandOn hand_on);

 private:
  // Recognised again after its owner has closed it and the number means another file.
  struct HandedOn {
    int descriptor = -1;
    uint64_t inode = 0;
  };
  struct Waiting {
    Socket socket;
    TimePoint since;
    bool spoke = false;  // and there was no room for it
  };

  Acceptor() = default;
  Status ListenLocally(std::string_view name, bool abstract);
  Status ListenOn(const std::string& host, const std::string& port);
  void Run();
  void AcceptFrom(const Socket& listener);
  void HandOnThoseWhoSpeak(const std::vector<bool>& readable);
  bool HasRoom();
  void DropWhoWaitsTooLong(TimePoint now);

  SteadyClock clock_;
  std::vector<Socket> listeners_;
  bool local_ = false;
  int port_ = 0;
  HandOn hand_on_;
  Socket wake_;                 // an eventfd: the thread ends
  std::list<Waiting> waiting_;  // to be handed on; oldest first
  std::vector<HandedOn> handed_on_;
  bool full_ = false;    // said once, not for each
  std::jthread thread_;  // last: uses the rest
};

}  // namespace sluice::elastic
