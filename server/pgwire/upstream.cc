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
    if (key == "host" || (key == "hostaddr" && upstream->host.empty())) {
      upstream->host = option->val;
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
    }
  }
}

std::string Encoded(std::string_view text) {
  std::string encoded;
  for (const char byte : text) {
    const bool plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                       (byte >= '0' && byte <= '9') || byte == '_' || byte == '.' || byte == '-';
    encoded +=
        plain ? std::string(1, byte) : fmt::format("%{:02X}", static_cast<unsigned char>(byte));
  }
  return encoded;
}

}  // namespace

Result<Upstream> UpstreamOf(const std::string& url) {
  Upstream upstream;
  const Options defaults(PQconndefaults());
  Take(defaults.get(), &upstream);
  if (upstream.tls_mode == "prefer") {
    upstream.tls_mode.clear();  // nobody has said so
  }
  const Options given(PQconninfoParse(url.c_str(), nullptr));
  if (given == nullptr) {
    return InvalidArgument("the source is not a PostgreSQL URL")
        .Hint("expected postgresql://user@host:port/database");
  }
  Take(given.get(), &upstream);
  if (upstream.host.empty()) {
    upstream.host = "/var/run/postgresql";
  }
  if (upstream.database.empty()) {
    upstream.database = upstream.user;
  }
  return upstream;
}

std::string UrlFor(const Upstream& upstream, std::string_view user, std::string_view database) {
  std::string url = fmt::format("postgresql://{}@/{}?host={}&port={}", Encoded(user),
                                Encoded(database), Encoded(upstream.host), Encoded(upstream.port));
  if (!upstream.tls_mode.empty()) {
    url += "&sslmode=" + Encoded(upstream.tls_mode);
  }
  if (!upstream.tls_root.empty()) {
    url += "&sslrootcert=" + Encoded(upstream.tls_root);
  }
  return url;
}

bool IsLoopback(std::string_view host) {
  return host.empty() || host.front() == '/' || host.front() == '@' || host == "localhost" ||
         host == "::1" || host.starts_with("127.");
}

}  // namespace sluice::server::pgwire
