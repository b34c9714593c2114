#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"

namespace sluice::server {
class Audit;
class LoginThrottle;
class RoleUse;
}  // namespace sluice::server

namespace sluice::server::pgwire {

class StatementService;
class TicketOffice;

// As records name this door.
inline constexpr const char* kDoorName = "postgresql";

// How a door authenticates its clients.
enum class ClientLogin {
  kTrusted,   // not at all: the server decides
  kPassword,  // the password, which the server checks
  kScram,     // SCRAM, checked against the server's verifiers
};

// The PostgreSQL door: listens, and serves every session on one thread of its own.
class Door {
 public:
  struct Options {
    // HOST:PORT, where port 0 takes a free one; or /FOLDER:PORT for the Unix socket where clients
    // look for it. Several are separated by commas.
    std::string address;
    std::string source;    // URL of the PostgreSQL server behind it; or sqlite:PATH
    std::string tls_cert;  // PEM files; both or none
    std::string tls_key;
    ClientLogin client_login = ClientLogin::kPassword;
    std::string verifiers;           // kScram: the URL of Verifiers::Open; "": `source`
    std::string password_file;       // the same for SQLite
    std::function<Status()> admits;  // asked before each login that proves nothing; null: all are
    size_t message_bytes = 0;        // for the messages that clients have not finished, in all
    std::shared_ptr<const TicketOffice> tickets;  // kScram with a server: issues those of its desk
  };
  // What the doors of a gateway share; lasts as long as they do.
  struct Shared {
    LoginThrottle& throttle;
    RoleUse& roles;
    Audit& audit;
  };
  // `service` lasts until Shutdown.
  // Errors: the address is taken, or a file is not a certificate.
  static Result<std::unique_ptr<Door>> Start(const Options& options, StatementService& service,
                                             const Shared& shared);
  virtual ~Door() = default;

  // As in Options, with the actual ports.
  virtual const std::string& address() const = 0;
  // Ends every session with an error that clients understand, and calls the service no more.
  // Statements that the service has begun may still write to this object until it is destroyed.
  // Idempotent; called by one thread.
  virtual void Shutdown() = 0;
};

}  // namespace sluice::server::pgwire
