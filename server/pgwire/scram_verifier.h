#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/status.h"

// What a server stores for a password with SCRAM-SHA-256 (RFC 5802, RFC 7677), as PostgreSQL does,
// and the keys that follow from the password.
namespace sluice::server::pgwire {

inline constexpr std::string_view kScramSha256 = "SCRAM-SHA-256";
// PostgreSQL's own limit for a SASL message; a longer one is refused without being parsed.
inline constexpr size_t kMostScramBytes = 1024;

// The verifier that a server stores for a password.
struct ScramVerifier {
  int iterations = 0;
  std::string salt;
  std::string stored_key;  // SHA-256 of the ClientKey
  std::string server_key;
  bool mock = false;  // of a role that does not exist: no password fits
};

// From pg_authid.rolpassword: "SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey". Errors are for
// the gateway's log: the client gets a mock verifier instead, and learns only that its password is
// wrong.
Result<ScramVerifier> ParseScramVerifier(std::string_view text);

// Of PostgreSQL's verifiers, unless it is told another number; and of those that Sluice makes: what
// OWASP recommends for PBKDF2 with SHA-256. A login of psql then takes half a second of its
// processor, a check of a password by the gateway 0.2 s.
inline constexpr int kPostgresScramIterations = 4'096;
inline constexpr int kOwnScramIterations = 600'000;

// The verifier text for a password from PreparePassword, with kOwnScramIterations.
std::string MakeScramVerifier(std::string_view password, std::string_view salt);

// Whether a password, as the user types it, is the one that the verifier was made from. Takes the
// same time for a mock verifier.
bool FitsScramVerifier(const ScramVerifier& verifier, std::string_view password);

// For a role that is unknown or has no password: the same each time it is requested. `secret`:
// known to this gateway only. `iterations`: of the verifiers of other roles.
ScramVerifier MockScramVerifier(std::string_view secret, std::string_view role, int iterations);

struct ScramKeys {
  std::string client_key;
  std::string server_key;
};
// Takes a millisecond for 4,096 iterations. `password`: from PreparePassword.
ScramKeys DeriveScramKeys(std::string_view password, std::string_view salt, int iterations);

// A number of iterations from a verifier or a message: decimal, from 1 on.
Result<int> ParseScramIterations(std::string_view text);

}  // namespace sluice::server::pgwire
