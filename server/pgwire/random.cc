#include <fmt/core.h>
#include <sys/random.h>

#include "base/check.h"
#include "server/pgwire/random_internal.h"

namespace sluice::server::pgwire {
namespace {

template <typename Number>
Number Random() {
  Number number = 0;
  // Never less: so few bytes come at once.
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

uint32_t RandomKey() {
  return Random<uint32_t>();
}

}  // namespace sluice::server::pgwire
