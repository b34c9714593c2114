#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "server/pgwire/upstream.h"

namespace sluice::server::pgwire {

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsFree>;

// For clients; null without a certificate. Both are PEM files.
Result<TlsContext> ServerTls(const std::string& certificate, const std::string& key);

// For connections to the server behind the door, as its URL says.
Result<TlsContext> ClientTls(const Upstream& upstream);

}  // namespace sluice::server::pgwire
