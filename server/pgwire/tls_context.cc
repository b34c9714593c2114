#include <fmt/core.h>
#include <openssl/err.h>
#include <sys/stat.h>

#include <utility>

#include "base/letter_case.h"
#include "base/log.h"
#include "server/pgwire/certificate_files.h"
#include "server/pgwire/channel_internal.h"
#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

std::string TlsError() {
  char text[256] = "unknown error";
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return text;
}

// Of libpq's names; "": any.
Result<int> TlsVersion(const std::string& name) {
  const std::pair<std::string_view, int> known[] = {{"", 0},
                                                    {"TLSv1", TLS1_VERSION},
                                                    {"TLSv1.1", TLS1_1_VERSION},
                                                    {"TLSv1.2", TLS1_2_VERSION},
                                                    {"TLSv1.3", TLS1_3_VERSION}};
  for (const auto& [text, version] : known) {
    if (SameIgnoringCase(name, text)) {
      return version;
    }
  }
  return InvalidArgument(fmt::format("'{}' is no version of TLS", name))
      .Hint("TLSv1, TLSv1.1, TLSv1.2 or TLSv1.3");
}

}  // namespace

Result<std::unique_ptr<ServerCertificate>> ServerCertificate::Read(std::string certificate,
                                                                   std::string key) {
  std::unique_ptr<ServerCertificate> read(
      new ServerCertificate(std::move(certificate), std::move(key)));
  if (!read->certificate_.empty()) {
    read->stamp_ = read->StampOfFiles();
    RETURN_IF_ERROR(read->ReadFiles());
  }
  return read;
}

SSL_CTX* ServerCertificate::Newest() {
  std::string stamp = certificate_.empty() ? "" : StampOfFiles();
  if (stamp != stamp_) {
    stamp_ = std::move(stamp);
    const Status read = ReadFiles();
    if (read.ok()) {
      log::Info("the PostgreSQL door has a new certificate");
    } else {
      log::Warn("the PostgreSQL door keeps its certificate: {}", read.ToString());
    }
  }
  return context_.get();
}

Status ServerCertificate::ReadFiles() {
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate_.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), key_.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument(fmt::format("cannot use {} and {}: {}", certificate_, key_, TlsError()))
        .Hint("a certificate and its key are expected there, as PEM files");
  }
  end_point_ = CertificateEndPoint(SSL_CTX_get0_certificate(context.get()));
  context_ = std::move(context);
  return OkStatus();
}

// A mounted Secret changes by another folder behind a link, an agent's file by being renamed.
std::string ServerCertificate::StampOfFiles() const {
  std::string stamp;
  for (const std::string& file : {certificate_, key_}) {
    struct stat about {};
    if (stat(file.c_str(), &about) == 0) {
      stamp += fmt::format("{} {} {} {}.{:09}\n", about.st_dev, about.st_ino, about.st_size,
                           about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    }
  }
  return stamp;
}

Status CheckFiles(const std::string& certificate, const std::string& key) {
  return ServerCertificate::Read(certificate, key).status();
}

Result<TlsContext> ClientTls(const Upstream& upstream) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  ASSIGN_OR_RETURN(const int least, TlsVersion(upstream.least_tls));
  ASSIGN_OR_RETURN(const int most, TlsVersion(upstream.most_tls));
  SSL_CTX_set_min_proto_version(context.get(), least);
  SSL_CTX_set_max_proto_version(context.get(), most);
  // As in libpq: a file of authorities makes `require` a verify-ca.
  const bool verified = upstream.tls_mode == "verify-ca" || upstream.tls_mode == "verify-full" ||
                        (upstream.tls_mode == "require" && !upstream.tls_root.empty());
  if (!verified) {
    return context;
  }
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  const bool loaded =
      upstream.tls_root.empty()
          ? SSL_CTX_set_default_verify_paths(context.get()) == 1
          : SSL_CTX_load_verify_locations(context.get(), upstream.tls_root.c_str(), nullptr) == 1;
  if (!loaded) {
    return InvalidArgument(
        fmt::format("cannot read the certificates of {}: {}", upstream.tls_root, TlsError()));
  }
  const std::string& file = upstream.tls_revoked;
  const std::string& folder = upstream.tls_revoked_folder;
  if (file.empty() && folder.empty()) {
    return context;
  }
  X509_STORE* const store = SSL_CTX_get_cert_store(context.get());
  if (X509_STORE_load_locations(store, file.empty() ? nullptr : file.c_str(),
                                folder.empty() ? nullptr : folder.c_str()) != 1) {
    return InvalidArgument(fmt::format("cannot read the revoked certificates of {}: {}",
                                       file.empty() ? folder : file, TlsError()));
  }
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
  return context;
}

}  // namespace sluice::server::pgwire
