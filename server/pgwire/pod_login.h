#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "catalog/catalog.h"
#include "server/pgwire/ticket.h"

namespace sluice::server::pgwire {

// With what a job's pods log in as its user, instead of `login`, which this gateway reads with:
// SCRAM's keys of its password (catalog/key_login.h), so that no Secret holds the password itself.
// A ticket of this gateway's desk, which pods cannot reach, becomes the keys in it, at the server
// itself. The password stays, with a warning, where the server asks this role for something else
// than SCRAM-SHA-256, or for what only libpq knows. `gateways_url`: of the same server. Logs in
// once. Errors: the server is away, refuses the password, or does not prove that it knows it, too.
// Thread-safe.
Result<catalog::DatabaseLogin> PodLogin(const catalog::DatabaseLogin& login,
                                        const std::string& gateways_url,
                                        const TicketOffice& tickets);

// The same as a function that keeps the two.
std::function<Result<catalog::DatabaseLogin>(const catalog::DatabaseLogin&)> PodLoginsWith(
    std::string gateways_url, std::shared_ptr<const TicketOffice> tickets);

}  // namespace sluice::server::pgwire
