#pragma once

#include <string>
#include <string_view>

#include "base/base64.h"
#include "base/status.h"

// Digests with OpenSSL, and strict base64, for this folder's files.
namespace sluice::server::pgwire {

inline constexpr size_t kSha256Bytes = 32;

std::string Sha256Of(std::string_view bytes);
std::string HmacSha256(std::string_view key, std::string_view text);
// Overwrites the secret.
void Forget(std::string* secret);

// Accepts only the text that EncodeBase64 makes.
Result<std::string> FromBase64(std::string_view text);
// The same for the text of kSha256Bytes bytes.
Result<std::string> KeyFromBase64(std::string_view text);

}  // namespace sluice::server::pgwire
