#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "catalog/catalog.h"
#include "server/pgwire/scram_verifier.h"

namespace sluice::server::pgwire {

// The keys with which a login can be repeated without its password: logs in to find the server's
// salt. `login`: a PostgreSQL URL without a password, and the password. nullopt: the server asks
// that role for no SCRAM-SHA-256. Errors: kFailedPrecondition, kUnimplemented: it wants something
// that only libpq knows; else it refuses the login, does not prove that it knows the password
// itself, or does not answer within ten seconds. Blocks.
Result<std::optional<ScramKeys>> FindScramKeys(const catalog::DatabaseLogin& login);

// As catalog/key_login.h has them.
std::string KeySecret(const ScramKeys& keys);
// 28000: not such a secret.
Result<ScramKeys> ReadKeySecret(const std::string& secret);

}  // namespace sluice::server::pgwire
