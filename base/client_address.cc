#include "base/client_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace sluice {

std::string NetworkOf(const std::string& address) {
  in6_addr bytes{};
  const std::string without_zone = address.substr(0, address.find('%'));
  if (inet_pton(AF_INET6, without_zone.c_str(), &bytes) != 1 || IN6_IS_ADDR_V4MAPPED(&bytes)) {
    return address;
  }
  constexpr size_t kNetworkBytes = 8;
  std::fill(bytes.s6_addr + kNetworkBytes, std::end(bytes.s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &bytes, text.data(), text.size()) == nullptr ? address : text.data();
}

}  // namespace sluice
