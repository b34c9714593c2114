#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/pgwire/channel_internal.h"

namespace sluice::server::pgwire {

struct SessionHouse;
class WireSession;

// A statement that borrows its session's back end: it connects as to a PostgreSQL server, and is
// handed the connection as it is. Belongs to the I/O thread.
class Borrower final : public std::enable_shared_from_this<Borrower> {
 public:
  Borrower(SessionHouse& house, int descriptor);

  void Wait();
  void Send(std::string_view bytes);
  bool writing() const { return writing_; }
  void Close();

 private:
  void Read();
  void Take(std::string_view bytes);
  bool TakeStartup();
  bool TakeToken();

  SessionHouse& house_;
  Channel channel_;
  WireSession* session_ = nullptr;  // from the right token on
  std::string held_;                // before that
  bool asked_ = false;              // for the token
  bool reading_ = false;
  bool writing_ = false;
};

// Where borrowers come in: an abstract Unix socket, for processes of this user.
class LoanDesk {
 public:
  explicit LoanDesk(SessionHouse& house);
  Status Listen();
  void Close();

 private:
  void Accept();

  SessionHouse& house_;
  boost::asio::local::stream_protocol::acceptor acceptor_;
};

}  // namespace sluice::server::pgwire
