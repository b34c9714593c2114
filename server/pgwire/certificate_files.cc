#include "server/pgwire/certificate_files.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "server/pgwire/private_files.h"

namespace sluice::server::pgwire {
namespace {

constexpr PrivateKind kPair = {
    .what = "a certificate or a key",
    .renewal = "remove it and gateway.crt, and a new pair is made",
    .secret = "the gateway's private key",
    .most_bytes = 64 << 10,  // a certificate has about a thousand
};

}  // namespace

Result<Certificate> KeepCertificate(const std::string& folder, const std::string& host,
                                    int64_t now_seconds) {
  RETURN_IF_ERROR(PrepareFolder(folder, kPair));
  const std::string certificate_path = folder + "/" + kCertificateFile;
  const std::string key_path = folder + "/" + kKeyFile;
  // Read in this order: a process that creates a pair writes the key first.
  ASSIGN_OR_RETURN(std::optional<std::string> certificate,
                   ReadPrivateFile(certificate_path, kPair));
  ASSIGN_OR_RETURN(std::optional<std::string> key, ReadPrivateFile(key_path, kPair));
  Certificate kept;
  if (key.has_value()) {
    kept.key = *std::move(key);
  } else if (certificate.has_value()) {
    return FailedPrecondition(fmt::format("'{}' has lost its private key: there is no '{}'",
                                          certificate_path, key_path))
        .Hint(fmt::format("bring '{}' back, or remove the certificate, and a new pair is made",
                          kKeyFile));
  } else {
    ASSIGN_OR_RETURN(const std::string made, MakePrivateKey());
    ASSIGN_OR_RETURN(kept.key, PutPrivateFile(folder, kKeyFile, made, kPair));
  }
  Status fits;
  if (certificate.has_value()) {
    kept.certificate = *std::move(certificate);
  } else {
    Result<std::string> made = CertifyKey(kept.key, host, now_seconds);
    if (made.status().sqlstate() == "22023") {
      return made.status();
    }
    fits = made.status();
    if (made.ok()) {
      ASSIGN_OR_RETURN(kept.certificate, PutPrivateFile(folder, kCertificateFile, *made, kPair));
    }
  }
  if (fits.ok()) {
    fits = CheckCertificate(kept, now_seconds);
  }
  if (!fits.ok()) {
    return std::move(fits)
        .Because(fmt::format("'{}'", folder))
        .Hint(fmt::format("remove {} and {} there, and a new pair is made; clients that check the "
                          "fingerprint need the new one",
                          kCertificateFile, kKeyFile));
  }
  return kept;
}

}  // namespace sluice::server::pgwire
