#include "server/pgwire/clients_before_login.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace sluice::server::pgwire {

size_t ClientsBeforeLogin::MostByDescriptors() {
  constexpr size_t kMost = 1'024;
  constexpr size_t kShare = 8;
  rlimit limit{};
  const bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? std::min<size_t>(kMost, limit.rlim_cur / kShare) : kMost;
}

uint64_t ClientsBeforeLogin::Add(std::string network, std::function<void()> close) {
  const auto of_network = [&network](const auto& client) {
    return client.second.network == network;
  };
  const auto same =
      static_cast<size_t>(std::count_if(clients_.begin(), clients_.end(), of_network));
  if (same >= most_ / 2 || clients_.size() >= most_) {
    const auto oldest = same >= most_ / 2
                            ? std::find_if(clients_.begin(), clients_.end(), of_network)
                            : clients_.begin();
    if (oldest != clients_.end()) {
      const std::function<void()> end = std::move(oldest->second.close);
      clients_.erase(oldest);
      end();
    }
  }
  clients_.emplace(++last_, Client{std::move(network), std::move(close)});
  return last_;
}

}  // namespace sluice::server::pgwire
