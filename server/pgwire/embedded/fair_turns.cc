#include "server/pgwire/embedded/fair_turns.h"

#include <algorithm>
#include <utility>

namespace sluice::server::pgwire {

FairTurns::Ticket FairTurns::Wait(const std::string& user, Work work) {
  Put(user, ++last_, std::move(work));
  return last_;
}

void FairTurns::Put(const std::string& user, Ticket ticket, Work work) {
  auto& waiting = shares_[user].waiting;
  if (waiting.empty()) {
    turns_.push_back(user);
  }
  waiting.emplace_back(ticket, std::move(work));
}

bool FairTurns::Move(const std::string& user, Ticket ticket, const std::string& to) {
  const auto share = shares_.find(user);
  if (share == shares_.end()) {
    return false;
  }
  auto& waiting = share->second.waiting;
  const auto found = std::find_if(waiting.begin(), waiting.end(),
                                  [ticket](const auto& one) { return one.first == ticket; });
  if (found == waiting.end()) {
    return false;
  }
  Work work = std::move(found->second);
  waiting.erase(found);
  if (waiting.empty()) {
    turns_.erase(std::find(turns_.begin(), turns_.end(), user));
    if (share->second.threads == 0) {
      shares_.erase(share);
    }
  }
  Put(to, ticket, std::move(work));
  return true;
}

std::optional<FairTurns::Turn> FairTurns::Next() {
  const auto found = std::find_if(turns_.begin(), turns_.end(), [this](const std::string& user) {
    return free_ > shares_[user].threads;
  });
  if (found == turns_.end()) {
    return std::nullopt;
  }
  Turn turn;
  turn.user = std::move(*found);
  turns_.erase(found);
  Share& share = shares_[turn.user];
  turn.work = std::move(share.waiting.front().second);
  share.waiting.pop_front();
  if (!share.waiting.empty()) {
    turns_.push_back(turn.user);
  }
  ++share.threads;
  --free_;
  return turn;
}

void FairTurns::End(const std::string& user) {
  const auto share = shares_.find(user);
  ++free_;
  if (--share->second.threads == 0 && share->second.waiting.empty()) {
    shares_.erase(share);
  }
}

}  // namespace sluice::server::pgwire
