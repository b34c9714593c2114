#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::server::pgwire {

class StatementService;

// The PostgreSQL door: listens, and serves every session on one thread of its own.
class Door {
 public:
  struct Options {
    std::string address;   // HOST:PORT; port 0 takes a free one
    std::string source;    // the PostgreSQL server behind it, as a URL
    std::string tls_cert;  // PEM files; both or none
    std::string tls_key;
    // Clients say their password, which the server behind checks. False: nobody asks here, and the
    // server lets in whom it wants.
    bool ask_password = true;
  };
  // `service` lasts until Shutdown. Errors: the address is taken, a file is no certificate.
  static Result<std::unique_ptr<Door>> Start(const Options& options, StatementService& service);
  virtual ~Door() = default;

  // HOST:PORT with the port that was taken.
  virtual const std::string& address() const = 0;
  // Ends every session, in words that clients know, and asks the service for nothing more. What the
  // service has begun may still speak to this object until it goes. Idempotent; of one thread.
  virtual void Shutdown() = 0;
};

}  // namespace sluice::server::pgwire
