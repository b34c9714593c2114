#include "elastic/master/all_reduce_rounds.h"

#include <utility>

#include "elastic/parameters/lane_tree.h"

namespace sluice::elastic {

void AllReduceRounds::Arrive(const Rendezvous::Arrival& arrival, RoundPosition position,
                             TimePoint now) {
  rendezvous_.Arrive(arrival, now);
  positions_[arrival.incarnation] = std::move(position);
}

void AllReduceRounds::Remove(Incarnation worker) {
  rendezvous_.Remove(worker);
  positions_.erase(worker);
}

std::optional<AllReduceRounds::Regrouped> AllReduceRounds::Regroup(TimePoint now) {
  const WorldId id = world().id;
  const int64_t beginning = world().beginning;
  if (!rendezvous_.Regroup(now)) {
    return std::nullopt;
  }
  return Regrouped{world().id != id, world().beginning != beginning};
}

std::optional<RoundPosition> AllReduceRounds::CloseNewest() {
  const Rendezvous::Member& newest = world().members[world().source.index()];
  if (newest.closed == Rendezvous::kNoState) {
    return std::nullopt;
  }
  rendezvous_.Closed(newest.closed);
  return positions_[newest.incarnation];
}

bool AllReduceRounds::IsOf(const RoundPosition& position) const {
  return !lanes_.empty() && position.lanes.size() == lanes_.size() &&
         position.epoch == lanes_.front().epoch && position.round == lanes_.front().round;
}

std::vector<Task> AllReduceRounds::LanesOfMember(Incarnation worker) const {
  const std::optional<Rank> rank = rendezvous_.RankOf(worker);
  if (!rank.has_value()) {
    return {};
  }
  const auto [begin, end] =
      LanesOf(static_cast<uint32_t>(lanes_.size()), *rank, world().members.size());
  return {lanes_.begin() + begin, lanes_.begin() + end};
}

void AllReduceRounds::Restore(const Rendezvous::Memory& memory, std::vector<Task> lanes) {
  rendezvous_.Restore(memory);
  lanes_ = std::move(lanes);
}

}  // namespace sluice::elastic
