#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <optional>

#include "base/check.h"
#include "server/pgwire/digests_internal.h"

namespace sluice::server::pgwire {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string DigestText(const std::array<unsigned char, EVP_MAX_MD_SIZE>& digest, size_t size) {
  return {reinterpret_cast<const char*>(digest.data()), size};
}

}  // namespace

std::string Sha256Of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const int done =
      EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SLUICE_CHECK(done == 1, "SHA-256 takes any bytes");
  return DigestText(digest, size);
}

std::string HmacSha256(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  const unsigned char* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                                   Bytes(text), text.size(), digest.data(), &size);
  SLUICE_CHECK(done != nullptr, "HMAC takes any bytes");
  std::string result = DigestText(digest, size);
  OPENSSL_cleanse(digest.data(), digest.size());
  return result;
}

void Forget(std::string* secret) {
  OPENSSL_cleanse(secret->data(), secret->size());
  secret->clear();
}

Result<std::string> FromBase64(std::string_view text) {
  std::optional<std::string> bytes = DecodeBase64(text);
  if (!bytes || EncodeBase64(*bytes) != text) {
    return InvalidArgument("no base64");
  }
  return *std::move(bytes);
}

Result<std::string> KeyFromBase64(std::string_view text) {
  ASSIGN_OR_RETURN(std::string key, FromBase64(text));
  if (key.size() != kSha256Bytes) {
    return InvalidArgument(fmt::format("{} bytes instead of {}", key.size(), kSha256Bytes));
  }
  return key;
}

}  // namespace sluice::server::pgwire
