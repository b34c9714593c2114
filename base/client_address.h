#pragma once

#include <string>

namespace sluice {

// The part of a client's address by which it is limited: of IPv6 the network (/64) that one
// customer has, who can use each address of it, without a zone; any other text as it is.
std::string NetworkOf(const std::string& address);

}  // namespace sluice
