#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "catalog/data_source.h"
#include "server/pgwire/ticket.h"

namespace sluice::server::pgwire {

// Where tickets are honoured: a process of its own (`sluice desk`), which logs in for whoever shows
// one and passes on what the two say. It lives on when the gateway is killed, as long as anybody
// who has come in that way is there, and so do the jobs that read through it. Of the door's I/O
// thread.
class TicketDesk {
 public:
  // `source`: the server's URL. Errors: the process cannot be started, or does not listen in time.
  static Result<std::unique_ptr<TicketDesk>> Start(const std::string& source);
  ~TicketDesk();

  // A ticket for the login, good at link(). Starts the process again if it has ended, which the
  // door's other sessions wait for.
  Result<std::string> Issue(const TicketLogin& login);
  const catalog::SessionLink& link() const { return link_; }

 private:
  class Process;
  explicit TicketDesk(std::string source);
  Status StartProcess();

  const std::string source_;
  const TicketOffice tickets_;
  catalog::SessionLink link_;
  std::unique_ptr<Process> process_;
};

// The whole life of `sluice desk`. Call it first in main, before any thread is started. Returns the
// exit code.
int RunTicketDesk();

}  // namespace sluice::server::pgwire
