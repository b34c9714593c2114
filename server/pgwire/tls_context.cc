#include <fmt/core.h>
#include <openssl/err.h>

#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

std::string TlsError() {
  char text[256] = "unknown error";
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return text;
}

}  // namespace

Result<TlsContext> ServerTls(const std::string& certificate, const std::string& key) {
  if (certificate.empty()) {
    return TlsContext();
  }
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument(fmt::format("cannot use {} and {}: {}", certificate, key, TlsError()))
        .Hint("a certificate and its key are expected there, as PEM files");
  }
  return context;
}

Result<TlsContext> ClientTls(const Upstream& upstream) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  const bool verified = upstream.tls_mode == "verify-ca" || upstream.tls_mode == "verify-full";
  if (verified) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const bool loaded =
        upstream.tls_root.empty()
            ? SSL_CTX_set_default_verify_paths(context.get()) == 1
            : SSL_CTX_load_verify_locations(context.get(), upstream.tls_root.c_str(), nullptr) == 1;
    if (!loaded) {
      return InvalidArgument(
          fmt::format("cannot read the certificates of {}: {}", upstream.tls_root, TlsError()));
    }
  }
  return context;
}

}  // namespace sluice::server::pgwire
