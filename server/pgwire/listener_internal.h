#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::server::pgwire {

// One address that clients come in by: HOST:PORT, or /FOLDER:PORT for the Unix socket
// /FOLDER/.s.PGSQL.PORT. Belongs to the I/O thread.
class Listener {
 public:
  struct Client {
    int descriptor = -1;  // the receiver's
    bool local = false;   // of this machine
    std::string address;  // without the port
  };
  using Accepted = std::function<void(Client)>;
  // Port 0 of a host takes a free one. A socket file that nobody listens at any more is replaced.
  // Errors: the address is taken, or is none.
  static Result<std::unique_ptr<Listener>> Open(boost::asio::io_context& context,
                                                const std::string& address, Accepted accepted);
  // Accepts no more, and takes its socket file away.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // With the port that was taken.
  const std::string& address() const { return address_; }

 private:
  struct State;
  Listener(std::shared_ptr<State> state, std::string address, std::string file);

  const std::shared_ptr<State> state_;
  const std::string address_;
  const std::string file_;  // "": none
};

}  // namespace sluice::server::pgwire
