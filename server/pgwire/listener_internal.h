#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::server::pgwire {

// One address that the door listens at: HOST:PORT, or /FOLDER:PORT for the Unix socket
// /FOLDER/.s.PGSQL.PORT. Belongs to the I/O thread.
class Listener {
 public:
  struct Client {
    int descriptor = -1;  // owned by the receiver
    bool local = false;   // on this machine
    std::string address;  // without the port
  };
  using Accepted = std::function<void(Client)>;
  // With a host, port 0 takes a free port. A socket file that no process listens at is replaced.
  // Errors: the address is taken, or malformed.
  static Result<std::unique_ptr<Listener>> Open(boost::asio::io_context& context,
                                                const std::string& address, Accepted accepted);
  // Stops accepting, and removes its socket file.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the actual port.
  const std::string& address() const { return address_; }

 private:
  struct State;
  Listener(std::shared_ptr<State> state, std::string address, std::string file);

  const std::shared_ptr<State> state_;
  const std::string address_;
  const std::string file_;  // "": none
};

}  // namespace sluice::server::pgwire
