#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "server/pgwire/certificate.h"

namespace sluice::server::pgwire {

inline constexpr const char* kCertificateFile = "gateway.crt";
inline constexpr const char* kKeyFile = "gateway.key";

// The certificate and the key in a folder, created on the first call (CertifyKey) and the same ever
// after. The folder is created, too, but not its parent. Files are 0600, and appear whole or not at
// all; several gateways that start at once all get the same pair. 55000, with what would be right:
// a file is damaged, has expired or belongs to another user, or others may read the key or write
// into the folder. 58030: the disk refuses.
Result<Certificate> KeepCertificate(const std::string& folder, const std::string& host,
                                    int64_t now_seconds);

// Whether the PEM files of a certificate (with those that vouch for it) and of its key can be used
// together; 22023 if not.
Status CheckFiles(const std::string& certificate, const std::string& key);

}  // namespace sluice::server::pgwire
