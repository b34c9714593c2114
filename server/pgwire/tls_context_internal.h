#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status.h"
#include "server/pgwire/upstream.h"

namespace sluice::server::pgwire {

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsFree>;

// For clients: a certificate and its key, PEM files, which are read again when they have changed,
// as a mounted Secret or an agent renews them. Not thread-safe.
class ServerCertificate {
 public:
  // Without files newest() is null.
  static Result<std::unique_ptr<ServerCertificate>> Read(std::string certificate, std::string key);
  // Looks at the files. Those that cannot be read, or do not belong together (yet), leave it as it
  // is; connections that have one keep it.
  SSL_CTX* Newest();
  // SCRAM's channel binding for connections that begin with it; nullopt: it offers none.
  const std::optional<std::string>& end_point() const { return end_point_; }

 private:
  ServerCertificate(std::string certificate, std::string key)
      : certificate_(std::move(certificate)), key_(std::move(key)) {}
  Status ReadFiles();
  std::string StampOfFiles() const;

  const std::string certificate_, key_;
  TlsContext context_;
  std::optional<std::string> end_point_;
  std::string stamp_;  // of the files that were last looked at
};

// For connections to the server behind the door, as its URL says.
Result<TlsContext> ClientTls(const Upstream& upstream);

}  // namespace sluice::server::pgwire
