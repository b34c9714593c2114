#include "server/statements/refused_logins.h"

#include <algorithm>
#include <utility>

#include "base/client_address.h"

namespace sluice::server {
namespace {

constexpr auto kWindow = std::chrono::seconds(static_cast<int64_t>(RefusedLogins::kWindowSeconds));

}  // namespace

RefusedLogins::Key RefusedLogins::KeyOf(const Login& login) const {
  Key key{NetworkOf(login.address), login.door, login.role, login.outcome};
  if (windows_.contains(key)) {
    return key;
  }
  const auto network = of_networks_.find(std::get<0>(key));
  if (network == of_networks_.end() && of_networks_.size() >= kMostNetworks) {
    return {"", login.door, "", login.outcome};
  }
  if (network != of_networks_.end() && network->second >= kMostOfNetwork) {
    return {std::get<0>(key), login.door, "", login.outcome};
  }
  return key;
}

bool RefusedLogins::Add(const Login& login, TimePoint now, int64_t wall_micros) {
  const Key key = KeyOf(login);
  const auto [entry, is_new] = windows_.try_emplace(key);
  Window& window = entry->second;
  if (is_new) {
    ++of_networks_[std::get<0>(key)];
    window.begun = now;
    return true;
  }
  if (window.sum.count++ == 0) {
    window.sum.login = login;
    window.sum.login.role = std::get<2>(key);
    window.sum.login.address = std::get<0>(key).empty() ? "" : login.address;
    window.sum.since_micros = wall_micros;
  }
  return false;
}

std::vector<RefusedLogins::Sum> RefusedLogins::TakeOver(TimePoint now) {
  std::vector<Sum> sums;
  for (auto entry = windows_.begin(); entry != windows_.end();) {
    Window& window = entry->second;
    if (now - window.begun < kWindow) {
      ++entry;
    } else if (window.sum.count > 0) {
      sums.push_back(std::exchange(window.sum, {}));
      window.begun = now;  // who goes on has a line a minute
      ++entry;
    } else {
      const auto network = of_networks_.find(std::get<0>(entry->first));
      if (--network->second == 0) {
        of_networks_.erase(network);
      }
      entry = windows_.erase(entry);
    }
  }
  return sums;
}

std::vector<RefusedLogins::Sum> RefusedLogins::TakeAll() {
  std::vector<Sum> sums;
  for (auto& [key, window] : windows_) {
    if (window.sum.count > 0) {
      sums.push_back(std::move(window.sum));
    }
  }
  windows_.clear();
  of_networks_.clear();
  return sums;
}

std::optional<TimePoint> RefusedLogins::NextEnd() const {
  std::optional<TimePoint> next;
  for (const auto& [key, window] : windows_) {
    next = std::min(next.value_or(window.begun + kWindow), window.begun + kWindow);
  }
  return next;
}

}  // namespace sluice::server
