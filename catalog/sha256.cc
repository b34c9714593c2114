#include "catalog/sha256.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace sluice::catalog {

struct Sha256::State {
  State() : context(EVP_MD_CTX_new()) {}
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  EVP_MD_CTX* const context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  const bool ready =
      state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1;
  SLUICE_CHECK(ready, "SHA-256 is always available");
}

Sha256::Sha256(Sha256&&) noexcept = default;
Sha256::~Sha256() = default;

void Sha256::Add(std::string_view bytes) {
  const int added = EVP_DigestUpdate(state_->context, bytes.data(), bytes.size());
  SLUICE_CHECK(added == 1, "SHA-256 takes any bytes");
}

std::string Sha256::Hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  const int done = EVP_DigestFinal_ex(state_->context, digest.data(), &length);
  SLUICE_CHECK(done == 1, "SHA-256 ends once");
  std::string hex;
  for (unsigned int i = 0; i < length; ++i) {
    hex += fmt::format("{:02x}", static_cast<unsigned>(digest[i]));
  }
  return hex;
}

}  // namespace sluice::catalog
