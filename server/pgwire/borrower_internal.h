#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/channel_internal.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/ticket.h"

namespace sluice::server::pgwire {

struct SessionHouse;
class WireSession;

// Somebody of the gateway's own processes who connects as to a PostgreSQL server: a statement that
// borrows its session's back end and is handed it as it is, or one who has a ticket and is logged
// in with it. Belongs to the I/O thread.
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
  void LogIn(TicketLogin login);
  void LoggedIn(BackendConnection::Outcome outcome);
  void Refuse(const Status& status);
  bool closed() const { return channel_ == nullptr || channel_->closed(); }

  SessionHouse& house_;
  std::unique_ptr<Channel> channel_;  // null: handed on
  StartupMessage startup_;
  WireSession* session_ = nullptr;  // from the right token on
  std::string held_;                // before that
  bool asked_ = false;              // for the token
  bool logging_in_ = false;         // with a ticket
  bool reading_ = false;
  bool writing_ = false;
};

// Where borrowers come in: an abstract Unix socket, for processes of the gateway's own user.
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
