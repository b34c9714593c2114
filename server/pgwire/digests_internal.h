#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

// Digests over OpenSSL, and base64, for the files of this folder.
namespace sluice::server::pgwire {

inline constexpr size_t kSha256Bytes = 32;

std::string Sha256Of(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view text);
// In time that does not depend on where they differ.
bool SameSecret(std::string_view a, std::string_view b);
// Overwrites it.
void Forget(std::string* secret);

std::string ToBase64(std::string_view bytes);
// Nothing but the one text that ToBase64 makes of some bytes.
Result<std::string> FromBase64(std::string_view text);

}  // namespace sluice::server::pgwire
