#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace sluice::server::pgwire {

// Which of those that wait gets one of a few threads. A user gets a further thread while more of
// them are free than the user has, so that one user never has more than half, two never all but one
// in four, and so on; those who wait take turns. Pure; not thread-safe.
class FairTurns {
 public:
  using Work = std::function<void(const std::string& user)>;
  // Of what waits.
  using Ticket = uint64_t;
  struct Turn {
    std::string user;
    Work work;
  };

  explicit FairTurns(size_t threads) : free_(threads) {}

  Ticket Wait(const std::string& user, Work work);
  // From now on it waits as another user's. False: it waits no more.
  bool Move(const std::string& user, Ticket ticket, const std::string& to);
  // The next that may run, which now has a thread; nullopt: nobody may.
  std::optional<Turn> Next();
  // A thread of that user's is free again.
  void End(const std::string& user);

 private:
  void Put(const std::string& user, Ticket ticket, Work work);

  struct Share {
    size_t threads = 0;
    std::deque<std::pair<Ticket, Work>> waiting = {};
  };

  size_t free_;
  Ticket last_ = 0;
  std::map<std::string, Share> shares_;  // of those that have a thread or wait
  std::deque<std::string> turns_;        // users for whom something waits, each once
};

}  // namespace sluice::server::pgwire
