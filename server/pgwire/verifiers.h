#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/pgwire/scram.h"

namespace sluice::server::pgwire {

// What PostgreSQL keeps of its roles' passwords, read on a connection and a thread of its own.
// Thread-safe.
class Verifiers {
 public:
  // `url`: of a superuser, or of a role that may call the function of VerifierFunction; a password
  // comes from the URL, PGPASSWORD or ~/.pgpass. 42501: it is neither.
  static Result<std::unique_ptr<Verifiers>> Open(const std::string& url);
  virtual ~Verifiers() = default;

  // Called once, on another thread, or not at all where the object goes first. A role without a
  // SCRAM verifier, or none at all, gets one that no password fits. 53300: too many are asked for.
  using Then = std::function<void(Result<ScramVerifier>)>;
  virtual void Find(std::string role, Then then) = 0;
};

// The statements that let `role` read verifiers without being a superuser; a superuser runs them in
// the database of the gateway's source.
std::string VerifierFunction(std::string_view role);

}  // namespace sluice::server::pgwire
