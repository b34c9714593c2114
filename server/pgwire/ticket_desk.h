#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "catalog/data_source.h"
#include "server/pgwire/ticket.h"

namespace sluice::server::pgwire {

// Where tickets are accepted: a process of its own (`sluice desk`), which logs in for visitors that
// show one and passes their bytes on. It survives the gateway for as long as a visitor is
// connected, so that jobs that read through it can continue. Belongs to the door's I/O thread.
class TicketDesk {
 public:
  // `source`: the server's URL. `tickets`: issues those that it accepts. Errors: the process cannot
  // be started, or does not listen in time.
  static Result<std::unique_ptr<TicketDesk>> Start(const std::string& source,
                                                   std::shared_ptr<const TicketOffice> tickets);
  ~TicketDesk();

  // A ticket for the login, accepted at link(). Restarts the process if it has ended, which blocks
  // the door's other sessions.
  Result<std::string> Issue(const TicketLogin& login);
  const catalog::SessionLink& link() const { return link_; }

 private:
  class Process;
  TicketDesk(std::string source, std::shared_ptr<const TicketOffice> tickets);
  Status StartProcess();

  const std::string source_;
  const std::shared_ptr<const TicketOffice> tickets_;
  catalog::SessionLink link_;
  std::unique_ptr<Process> process_;
};

// The main function of `sluice desk`. Call it first in main, before any thread starts. Returns the
// exit code.
int RunTicketDesk();

}  // namespace sluice::server::pgwire
