#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

namespace sluice {

// Which of `clients`, the oldest first, makes room for another: the oldest of the network
// (NetworkOf) that has the most, so that one that opens many connections takes none from others.
// `network_of` says that of a client. The end, if there are none.
template <typename Clients, typename NetworkOfClient>
auto OldestOfMost(Clients& clients, const NetworkOfClient& network_of) {
  std::map<std::string, size_t> counts;
  size_t most = 0;
  for (const auto& client : clients) {
    most = std::max(most, ++counts[network_of(client)]);
  }
  return std::find_if(clients.begin(), clients.end(),
                      [&](const auto& client) { return counts.at(network_of(client)) == most; });
}

}  // namespace sluice
