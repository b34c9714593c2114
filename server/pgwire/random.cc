#include <fmt/core.h>
#include <sys/random.h>

#include "base/check.h"
#include "server/pgwire/random_internal.h"

namespace sluice::server::pgwire {
namespace {

template <typename Number>
Number Random() {
  Number number = 0;
  // Never fewer: so few bytes come at once.
  SLUICE_CHECK(getrandom(&number, sizeof(number), 0) == sizeof(number), "no random numbers");
  return number;
}

}  // namespace

std::string RandomToken() {
  constexpr int kWords = 4;
  std::string token;
  for (int i = 0; i < kWords; ++i) {
    token += fmt::format("{:016x}", Random<uint64_t>());
  }
  return token;
}

std::string RandomSalt() {
  std::string salt;
  for (int i = 0; i < 2; ++i) {
    const auto number = Random<uint64_t>();
    salt.append(reinterpret_cast<const char*>(&number), sizeof(number));
  }
  return salt;
}

uint32_t RandomKey() {
  return Random<uint32_t>();
}

}  // namespace sluice::server::pgwire
