#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

// The certificate that a door without one creates for itself. Pure except for the random numbers
// that keys are made from; thread-safe.
namespace sluice::server::pgwire {

// Both as PEM.
struct Certificate {
  std::string certificate;
  std::string key;
};

Result<std::string> MakePrivateKey();  // EC P-256

// A self-signed certificate for `host` (a name or an address), localhost, 127.0.0.1 and ::1, valid
// for ten years from `now_seconds` (since 1970). It cannot sign others. 22023: not a host name.
Result<std::string> CertifyKey(std::string_view key, std::string_view host, int64_t now_seconds);

// OK if the two belong together and are valid at `now_seconds`, else 55000.
Status CheckCertificate(const Certificate& certificate, int64_t now_seconds);

// SHA-256 in the form that people compare: "AB:CD:...".
Result<std::string> CertificateFingerprint(std::string_view certificate);

// SCRAM's channel binding over TLS (RFC 5929, tls-server-end-point): the certificate's hash, by the
// digest it was signed with, or SHA-256 instead of MD5 and SHA-1. `der`: the certificate of a
// connection's peer. 0A000: it was signed without a digest (Ed25519).
Result<std::string> TlsServerEndPoint(std::string_view der);

}  // namespace sluice::server::pgwire
