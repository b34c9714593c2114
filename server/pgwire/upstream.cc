#include "server/pgwire/upstream.h"

#include <fmt/core.h>
#include <libpq-fe.h>

#include <memory>

namespace sluice::server::pgwire {
namespace {

struct OptionsFree {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, OptionsFree>;

void Take(const PQconninfoOption* options, Upstream* upstream) {
  for (const PQconninfoOption* option = options; option != nullptr && option->keyword != nullptr;
       ++option) {
    if (option->val == nullptr || *option->val == '\0') {
      continue;
    }
    const std::string_view key = option->keyword;
    if (key == "host") {
      upstream->host = option->val;
    } else if (key == "hostaddr") {
      upstream->address = option->val;
    } else if (key == "port") {
      upstream->port = option->val;
    } else if (key == "user") {
      upstream->user = option->val;
    } else if (key == "dbname") {
      upstream->database = option->val;
    } else if (key == "sslmode") {
      upstream->tls_mode = option->val;
    } else if (key == "sslrootcert") {
      upstream->tls_root = option->val;
    } else if (key == "sslcrl") {
      upstream->tls_revoked = option->val;
    } else if (key == "sslcrldir") {
      upstream->tls_revoked_folder = option->val;
    } else if (key == "ssl_min_protocol_version") {
      upstream->least_tls = option->val;
    } else if (key == "ssl_max_protocol_version") {
      upstream->most_tls = option->val;
    } else if (key == "channel_binding") {
      upstream->binds_channel = option->val;
    }
  }
}

}  // namespace

Result<Upstream> UpstreamOf(const std::string& url) {
  Upstream upstream;
  const Options defaults(PQconndefaults());
  Take(defaults.get(), &upstream);
  if (upstream.tls_mode == "prefer") {
    upstream.tls_mode.clear();  // not given
  }
  const Options given(PQconninfoParse(url.c_str(), nullptr));
  if (given == nullptr) {
    return InvalidArgument("the source is not a PostgreSQL URL")
        .Hint("expected postgresql://user@host:port/database");
  }
  Take(given.get(), &upstream);
  if (upstream.binds_channel == "require") {
    return Unimplemented("channel_binding=require is not looked at by the PostgreSQL port")
        .Hint("sslmode=verify-full says more: with it the server's certificate is checked");
  }
  if (upstream.host.empty()) {
    upstream.host = upstream.address.empty() ? "/var/run/postgresql" : upstream.address;
  }
  if (upstream.database.empty()) {
    upstream.database = upstream.user;
  }
  return upstream;
}

bool IsLoopback(std::string_view host) {
  return host.empty() || host.front() == '/' || host.front() == '@' || host == "localhost" ||
         host == "::1" || host.starts_with("127.");
}

}  // namespace sluice::server::pgwire
