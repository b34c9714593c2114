#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

namespace sluice::server::pgwire {

// The connections of a door whose client has not logged in yet. Each holds descriptors, and anybody
// can make them, so their number is limited, in all and of one network (NetworkOf): a new one
// replaces the oldest. Belongs to one thread.
class ClientsBeforeLogin {
 public:
  // An eighth of the process's descriptors, at most 1,024.
  static size_t MostByDescriptors();

  explicit ClientsBeforeLogin(size_t most = MostByDescriptors()) : most_(most) {}

  // `close` ends the connection, which may call Remove. Returns its number.
  uint64_t Add(std::string network, std::function<void()> close);
  // It has logged in, or is closed. Unknown numbers have no effect.
  void Remove(uint64_t number) { clients_.erase(number); }
  size_t size() const { return clients_.size(); }

 private:
  struct Client {
    std::string network;
    std::function<void()> close;
  };

  const size_t most_;
  uint64_t last_ = 0;
  std::map<uint64_t, Client> clients_;  // oldest first
};

}  // namespace sluice::server::pgwire
