#include "server/pgwire/scram_verifier.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/same_secret.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/password.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kUsualSaltBytes = 16;

}  // namespace

Result<int> ParseScramIterations(std::string_view text) {
  int iterations = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), iterations);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || iterations < 1 ||
      text.front() == '0') {
    return InvalidArgument("no number of iterations");
  }
  return iterations;
}

Result<ScramVerifier> ParseScramVerifier(std::string_view text) {
  if (text.starts_with("md5")) {
    return FailedPrecondition("the password of the role is stored as an MD5 hash")
        .Hint("SET password_encryption = 'scram-sha-256' and give the role its password again");
  }
  const Status wrong =
      FailedPrecondition("the password of the role is not stored as a SCRAM verifier")
          .Detail("expected is SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey");
  const size_t scheme = text.find('$');
  const size_t keys = text.rfind('$');
  if (text.size() > kMostScramBytes || scheme == keys || text.substr(0, scheme) != kScramSha256) {
    return wrong;
  }
  const std::string_view how = text.substr(scheme + 1, keys - scheme - 1);
  const std::string_view what = text.substr(keys + 1);
  const size_t salt = how.find(':');
  const size_t server_key = what.find(':');
  if (salt == std::string_view::npos || server_key == std::string_view::npos) {
    return wrong;
  }
  const Result<int> iterations = ParseScramIterations(how.substr(0, salt));
  Result<std::string> salt_bytes = FromBase64(how.substr(salt + 1));
  Result<std::string> stored = KeyFromBase64(what.substr(0, server_key));
  Result<std::string> server = KeyFromBase64(what.substr(server_key + 1));
  if (!iterations.ok() || !salt_bytes.ok() || salt_bytes->empty() || !stored.ok() || !server.ok()) {
    return wrong;
  }
  return ScramVerifier{*iterations, *std::move(salt_bytes), *std::move(stored), *std::move(server)};
}

ScramVerifier MockScramVerifier(std::string_view secret, std::string_view role, int iterations) {
  ScramVerifier verifier;
  verifier.iterations = iterations;
  verifier.salt = HmacSha256(secret, role).substr(0, kUsualSaltBytes);
  verifier.stored_key.assign(kSha256Bytes, '\0');
  verifier.server_key.assign(kSha256Bytes, '\0');
  verifier.mock = true;
  return verifier;
}

ScramKeys DeriveScramKeys(std::string_view password, std::string_view salt, int iterations) {
  std::string salted(kSha256Bytes, '\0');
  const int done = PKCS5_PBKDF2_HMAC(password.data(), static_cast<int>(password.size()),
                                     reinterpret_cast<const unsigned char*>(salt.data()),
                                     static_cast<int>(salt.size()), iterations, EVP_sha256(),
                                     static_cast<int>(salted.size()),
                                     reinterpret_cast<unsigned char*>(salted.data()));
  SLUICE_CHECK(done == 1, "PBKDF2 takes any bytes");
  ScramKeys keys = {HmacSha256(salted, "Client Key"), HmacSha256(salted, "Server Key")};
  Forget(&salted);
  return keys;
}

std::string MakeScramVerifier(std::string_view password, std::string_view salt) {
  ScramKeys keys = DeriveScramKeys(password, salt, kOwnScramIterations);
  std::string text =
      fmt::format("{}${}:{}${}:{}", kScramSha256, kOwnScramIterations, EncodeBase64(salt),
                  EncodeBase64(Sha256Of(keys.client_key)), EncodeBase64(keys.server_key));
  Forget(&keys.client_key);
  Forget(&keys.server_key);
  return text;
}

bool FitsScramVerifier(const ScramVerifier& verifier, std::string_view password) {
  // No verifier can have been made from a password that cannot be prepared.
  const Result<std::string> prepared = PreparePassword(password);
  const ScramKeys keys = DeriveScramKeys(prepared.ok() ? *prepared : std::string(password),
                                         verifier.salt, verifier.iterations);
  return SameSecret(Sha256Of(keys.client_key), verifier.stored_key) && !verifier.mock;
}

}  // namespace sluice::server::pgwire
