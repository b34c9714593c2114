#include <fmt/core.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdint>

#include "base/check.h"
#include "server/pgwire/digests_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr std::string_view kBase64Digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr uint32_t kSixBits = 63;

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

std::string ToBase64(std::string_view bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8U | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kBase64Digits[group >> (18 - 6 * j) & kSixBits] : '=';
    }
  }
  return text;
}

Result<std::string> FromBase64(std::string_view text) {
  std::string bytes;
  uint32_t group = 0;
  size_t digits = 0;
  for (const char c : text) {
    const size_t digit = kBase64Digits.find(c);
    if (digit == std::string_view::npos) {
      break;  // '=' at the end; the comparison below refuses anything else
    }
    group = (group << 6U | static_cast<uint32_t>(digit)) & 0xFFFFFFU;
    if (++digits % 4 != 1) {
      bytes += static_cast<char>(group >> (6 - 2 * ((digits - 1) % 4)) & 0xFFU);
    }
  }
  if (ToBase64(bytes) != text) {
    return InvalidArgument("no base64");
  }
  return bytes;
}

Result<std::string> KeyFromBase64(std::string_view text) {
  ASSIGN_OR_RETURN(std::string key, FromBase64(text));
  if (key.size() != kSha256Bytes) {
    return InvalidArgument(fmt::format("{} bytes instead of {}", key.size(), kSha256Bytes));
  }
  return key;
}

}  // namespace sluice::server::pgwire
