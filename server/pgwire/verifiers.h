#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "server/pgwire/scram.h"

namespace sluice::server::pgwire {

// Reads the verifiers that PostgreSQL stores for its roles' passwords, with a connection and a
// thread of its own. Thread-safe.
class Verifiers {
 public:
  // `url`: of a superuser, or of a role that may call the function of VerifierFunction; the
  // password comes from the URL, PGPASSWORD or ~/.pgpass. 42501: it is neither.
  static Result<std::unique_ptr<Verifiers>> Open(const std::string& url);
  virtual ~Verifiers() = default;

  // Called once, on another thread, or not at all if the object is destroyed first. A role without
  // a SCRAM verifier, or one that does not exist, gets a verifier that no password fits. 53300: too
  // many requests are waiting.
  using Then = std::function<void(Result<ScramVerifier>)>;
  virtual void Find(std::string role, Then then) = 0;
};

// The statements that let `role` read verifiers without being a superuser. A superuser runs them in
// the database of the gateway's source.
std::string VerifierFunction(std::string_view role);

}  // namespace sluice::server::pgwire
