#include "server/pgwire/pod_login.h"

#include <optional>
#include <utility>

#include "base/log.h"
#include "catalog/client_login.h"
#include "catalog/source_url.h"
#include "server/pgwire/scram_keys.h"

namespace sluice::server::pgwire {
namespace {

// A ticket's login at the server itself.
Result<catalog::DatabaseLogin> AtServer(const TicketLogin& ticket,
                                        const std::string& gateways_url) {
  ASSIGN_OR_RETURN(const catalog::SourceUrl ours, catalog::ParseSourceUrl(gateways_url));
  return catalog::DatabaseLogin{
      catalog::WithDatabase(catalog::WithRole(catalog::WithoutPasswordFile(ours.text), ticket.user),
                            ticket.database),
      KeySecret(ticket.keys)};
}

// Not of a server that refuses the password, or poses as another one.
bool IsForLibpq(const Status& status) {
  return status.code() == Code::kFailedPrecondition || status.code() == Code::kUnimplemented;
}

}  // namespace

Result<catalog::DatabaseLogin> PodLogin(const catalog::DatabaseLogin& login,
                                        const std::string& gateways_url,
                                        const TicketOffice& tickets) {
  if (const Result<TicketLogin> ticket = tickets.Read(login.secret); ticket.ok()) {
    return AtServer(*ticket, gateways_url);
  }
  catalog::DatabaseLogin portable = catalog::WithPasswordOfFile(login);
  if (portable.secret.empty() || !portable.url.starts_with("postgresql:")) {
    return portable;
  }
  const Result<std::optional<ScramKeys>> keys = FindScramKeys(portable);
  if (!keys.ok() && !IsForLibpq(keys.status())) {
    return keys.status();
  }
  if (keys.ok() && keys->has_value()) {
    portable.secret = KeySecret(**keys);
    return portable;
  }
  // libpq has logged in with it.
  log::Warn("the Secrets of a job hold the password of role \"{}\": {}",
            catalog::RoleIn(portable.url),
            keys.ok() ? "the server does not ask it for scram-sha-256" : keys.status().message());
  return portable;
}

std::function<Result<catalog::DatabaseLogin>(const catalog::DatabaseLogin&)> PodLoginsWith(
    std::string gateways_url, std::shared_ptr<const TicketOffice> tickets) {
  return [gateways_url = std::move(gateways_url),
          tickets = std::move(tickets)](const catalog::DatabaseLogin& login) {
    return PodLogin(login, gateways_url, *tickets);
  };
}

}  // namespace sluice::server::pgwire
