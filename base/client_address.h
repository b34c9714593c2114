#pragma once

#include <string>

namespace sluice {

// An IPv4 address as such where a socket for both families says "::ffff:10.0.0.1"; any other text
// as it is.
std::string PlainAddress(const std::string& address);

// The address of the other end of a TCP connection, without the port; "": it has none.
std::string AddressOfPeer(int descriptor);

// The part of a client's address by which it is limited: of IPv6 the network (/64) that one
// customer has, who can use each address of it, without a zone; of anything else PlainAddress.
std::string NetworkOf(const std::string& address);

}  // namespace sluice
