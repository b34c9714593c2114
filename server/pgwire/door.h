#pragma once

#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::server {
class LoginThrottle;
}

namespace sluice::server::pgwire {

class StatementService;

// What a door asks of who comes in.
enum class ClientLogin {
  kTrusted,   // nothing: the server lets in whom it wants
  kPassword,  // the password, which the server checks
  kScram,     // a proof that the client knows the password, by what the server keeps of it
};

// The PostgreSQL door: listens, and serves every session on one thread of its own.
class Door {
 public:
  struct Options {
    // HOST:PORT, port 0 takes a free one; or /FOLDER:PORT for the Unix socket that clients look for
    // there. Several with commas.
    std::string address;
    std::string source;    // the PostgreSQL server behind it, as a URL; or sqlite:PATH
    std::string tls_cert;  // PEM files; both or none
    std::string tls_key;
    ClientLogin client_login = ClientLogin::kPassword;
    std::string verifiers;      // kScram: the URL of Verifiers::Open; "": `source`
    std::string password_file;  // the same over SQLite
  };
  // `service` lasts until Shutdown, `throttle`, which other doors may share, as long as the door.
  // Errors: the address is taken, a file is no certificate.
  static Result<std::unique_ptr<Door>> Start(const Options& options, StatementService& service,
                                             LoginThrottle& throttle);
  virtual ~Door() = default;

  // As in Options, with the ports that were taken.
  virtual const std::string& address() const = 0;
  // Ends every session, in words that clients know, and asks the service for nothing more. What the
  // service has begun may still speak to this object until it goes. Idempotent; of one thread.
  virtual void Shutdown() = 0;
};

}  // namespace sluice::server::pgwire
