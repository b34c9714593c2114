#include "catalog/key_login.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace sluice::catalog {

std::string KeyDeskHost() {
  // Not the process's number: pods may share the host's network, and be number 1 each.
  static const std::string name = fmt::format(
      "@sluice-key-desk-{:016x}", std::random_device()() | uint64_t{std::random_device()()} << 32);
  return name;
}

std::string KeyDeskToken(const KeyDeskRequest& request) {
  return fmt::format("{} {}", request.secret, request.url);
}

KeyDeskRequest ReadKeyDeskToken(std::string_view token) {
  const size_t blank = std::min(token.find(' '), token.size());
  return {std::string(token.substr(0, blank)),
          std::string(token.substr(std::min(blank + 1, token.size())))};
}

}  // namespace sluice::catalog
