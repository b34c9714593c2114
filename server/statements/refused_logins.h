#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/clock.h"

namespace sluice::server {

// Which refused logins have a line of their own in the audit: strangers can make thousands a
// second, and must not fill its disk. The first of an address and role (and door, and outcome) has;
// those that follow within a minute are counted, and their number is told at its end, each minute
// anew. Where one network (NetworkOf) names many roles, or there are many networks, the further
// ones count as one. Pure; bounded memory. Not thread-safe.
class RefusedLogins {
 public:
  static constexpr double kWindowSeconds = 60;
  // Of one network, with a line of their own; the further ones have the role "".
  static constexpr size_t kMostOfNetwork = 16;
  // The further ones have the address "", too.
  static constexpr size_t kMostNetworks = 1'024;

  struct Login {
    std::string door;
    std::string role;
    std::string address;
    std::string outcome;  // SQLSTATE
    std::string reason;
  };
  // Logins that were counted, with what the first of them said.
  struct Sum {
    Login login;
    int64_t count = 0;
    int64_t since_micros = 0;  // the first of them, on the wall clock
  };

  // True: it is to have a line now. False: it was counted.
  bool Add(const Login& login, TimePoint now, int64_t wall_micros);
  // Of the minutes that are over.
  std::vector<Sum> TakeOver(TimePoint now);
  std::vector<Sum> TakeAll();
  // When the next minute is over; nullopt: none is under way.
  std::optional<TimePoint> NextEnd() const;

 private:
  // Network, door, role, outcome.
  using Key = std::tuple<std::string, std::string, std::string, std::string>;
  struct Window {
    TimePoint begun{0};
    Sum sum;
  };
  Key KeyOf(const Login& login) const;

  std::map<Key, Window> windows_;
  std::map<std::string, size_t> of_networks_;  // how many windows each has
};

}  // namespace sluice::server
