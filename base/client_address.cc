#include "base/client_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>

namespace sluice {

namespace {

std::optional<in6_addr> ReadIpv6(const std::string& address) {
  in6_addr bytes{};
  const std::string without_zone = address.substr(0, address.find('%'));
  return inet_pton(AF_INET6, without_zone.c_str(), &bytes) == 1 ? std::optional(bytes)
                                                                : std::nullopt;
}

}  // namespace

std::string PlainAddress(const std::string& address) {
  const std::optional<in6_addr> bytes = ReadIpv6(address);
  if (!bytes || !IN6_IS_ADDR_V4MAPPED(&*bytes)) {
    return address;
  }
  constexpr size_t kPrefixBytes = 12;
  std::array<char, INET_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET, &bytes->s6_addr[kPrefixBytes], text.data(), text.size()) == nullptr
             ? address
             : text.data();
}

std::string AddressOfPeer(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
    return "";
  }
  const void* const bytes =
      address.ss_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(address).sin_addr)
          : &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(address.ss_family, bytes, text.data(), text.size()) == nullptr
             ? ""
             : PlainAddress(text.data());
}

std::string NetworkOf(const std::string& address) {
  std::optional<in6_addr> bytes = ReadIpv6(address);
  if (!bytes || IN6_IS_ADDR_V4MAPPED(&*bytes)) {
    return PlainAddress(address);
  }
  constexpr size_t kNetworkBytes = 8;
  std::fill(bytes->s6_addr + kNetworkBytes, std::end(bytes->s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &*bytes, text.data(), text.size()) == nullptr ? address : text.data();
}

}  // namespace sluice
