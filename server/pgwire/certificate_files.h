#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "server/pgwire/certificate.h"

namespace sluice::server::pgwire {

inline constexpr const char* kCertificateFile = "gateway.crt";
inline constexpr const char* kKeyFile = "gateway.key";

// The certificate and the key that a folder keeps, made at the first time (CertifyKey) and the same
// ever after; the folder, too, but not the one that it is in. Files are 0600, and appear whole or
// not at all; of several gateways that begin at once all get the same pair. 55000, with what would
// be right: a file is damaged, has expired, is somebody else's, or others may read the key or write
// into the folder. 58030: the disk does not let us.
Result<Certificate> KeepCertificate(const std::string& folder, const std::string& host,
                                    int64_t now_seconds);

}  // namespace sluice::server::pgwire
