#include "elastic/queue/rendezvous.h"

#include <algorithm>

namespace sluice::elastic {

void Rendezvous::Arrive(const Arrival& arrival, TimePoint now) {
  Worker& worker = workers_[arrival.incarnation];
  // A repetition: the answer that let it go did not arrive.
  if (MayGo(arrival.incarnation) && arrival.generation < world_.generation) {
    return;
  }
  worker.member.incarnation = arrival.incarnation;
  worker.member.address = arrival.address;
  worker.member.closed = arrival.beginning == world_.beginning ? arrival.closed : kNoState;
  worker.tried = arrival.world;
  worker.here = true;
  worker.failed = arrival.failed;
  worker.may_have = worker.member.closed;
  if (!first_here_.has_value()) {
    first_here_ = now;
  }
  if (arrival.failed && arrival.world == world_.id) {
    first_failure_ = first_failure_.value_or(now);
    silent_.insert(arrival.silent);
  }
}

Rendezvous::Memory Rendezvous::Remember() const {
  Memory memory{world_, committed_, {}};
  for (const auto& [incarnation, worker] : workers_) {
    memory.workers.push_back({worker.member, worker.tried, worker.may_have});
  }
  return memory;
}

void Rendezvous::Restore(const Memory& memory) {
  world_ = memory.world;
  committed_ = memory.committed;
  workers_.clear();
  for (const Known& known : memory.workers) {
    Worker& worker = workers_[known.member.incarnation];
    worker.member = known.member;
    worker.tried = known.tried;
    worker.may_have = known.may_have;
  }
  first_here_.reset();
  first_failure_.reset();
  silent_.clear();
}

void Rendezvous::Remove(Incarnation incarnation) {
  workers_.erase(incarnation);
}

std::optional<Rank> Rendezvous::RankOf(Incarnation incarnation) const {
  for (size_t rank = 0; rank < world_.members.size(); ++rank) {
    if (world_.members[rank].incarnation == incarnation) {
      return Rank::At(rank);
    }
  }
  return std::nullopt;
}

bool Rendezvous::MayGo(Incarnation incarnation) const {
  const auto found = workers_.find(incarnation);
  return found != workers_.end() && !found->second.here && RankOf(incarnation).has_value();
}

// Members that are still working are waited for, unless a collective has failed: then they learn of
// it when they next exchange data, and one that is silent or does not come is hung.
bool Rendezvous::WaitsForMembers(TimePoint now) {
  bool waits = false;
  for (const Member& member : world_.members) {
    const auto found = workers_.find(member.incarnation);
    waits = waits || (found != workers_.end() && !found->second.here &&
                      !silent_.contains(member.incarnation));
  }
  return waits && (!first_failure_.has_value() ||
                   SecondsBetween(*first_failure_, now) < options_.regroup_seconds);
}

bool Rendezvous::MayHaveNewest(const Worker& worker) const {
  return worker.may_have != kNoState && worker.may_have >= committed_;
}

// None of the waiting workers has the newest parameters, but a running one that is not here may.
bool Rendezvous::NewestMayCome() const {
  bool may_come = false;
  for (const auto& [incarnation, worker] : workers_) {
    if (worker.here && MayHaveNewest(worker)) {
      return false;
    }
    may_come = may_come || (!worker.here && MayHaveNewest(worker));
  }
  return may_come;
}

std::vector<Incarnation> Rendezvous::Candidates(bool with_members) const {
  std::vector<Incarnation> candidates;
  int64_t newest = kNoState;
  for (const auto& [incarnation, worker] : workers_) {
    if (worker.here || (with_members && RankOf(incarnation).has_value())) {
      candidates.push_back(incarnation);
      newest = std::max(newest, worker.member.closed);
    }
  }
  const size_t size = std::min<size_t>(candidates.size(), options_.max_members);
  if (size < std::max<uint32_t>(options_.min_members, 1)) {
    return {};
  }
  // The oldest; preferably one with the newest parameters.
  const auto has_newest = [&](Incarnation incarnation) {
    return workers_.at(incarnation).member.closed == newest;
  };
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(size);
  if (std::none_of(candidates.begin(), end, has_newest)) {
    *(end - 1) = *std::find_if(end, candidates.end(), has_newest);
  }
  candidates.resize(size);
  return candidates;
}

bool Rendezvous::ShouldRegroup() const {
  std::vector<Incarnation> members;
  for (const Member& member : world_.members) {
    members.push_back(member.incarnation);
  }
  const std::vector<Incarnation> chosen = Candidates(true);
  return !chosen.empty() && chosen != members;
}

bool Rendezvous::Regroup(TimePoint now) {
  if (std::none_of(workers_.begin(), workers_.end(),
                   [](const auto& worker) { return worker.second.here; })) {
    return false;
  }
  if (WaitsForMembers(now) || NewestMayCome()) {
    return false;
  }
  const std::vector<Incarnation> chosen = Candidates(false);
  if (chosen.empty()) {
    return false;
  }
  if (world_.id == kNoWorld &&
      chosen.size() < std::min(options_.expected_members, options_.max_members) &&
      SecondsBetween(*first_here_, now) < options_.gather_seconds) {
    return false;
  }
  Form(chosen);
  return true;
}

void Rendezvous::Form(const std::vector<Incarnation>& chosen) {
  std::vector<Member> members;
  bool failed = false;
  bool same = chosen.size() == world_.members.size();
  int64_t newest = kNoState;
  for (Incarnation incarnation : chosen) {
    const Worker& worker = workers_.at(incarnation);
    same = same && world_.members[members.size()].incarnation == incarnation &&
           worker.tried == world_.id;
    failed = failed || worker.failed;
    newest = std::max(newest, worker.member.closed);
    members.push_back(worker.member);
  }
  if (newest < committed_) {
    // The parameters were lost with their last holder.
    ++world_.beginning;
    committed_ = newest = kNoState;
    for (Member& member : members) {
      member.closed = kNoState;
    }
    same = false;
  }
  if (!same || failed) {
    ++world_.id;
  }
  ++world_.generation;
  world_.members = std::move(members);
  world_.closed = newest;
  world_.source = Rank::First();
  while (world_.members[world_.source.index()].closed != newest) {
    ++world_.source;
  }
  for (auto& [incarnation, worker] : workers_) {
    const bool chosen_one = RankOf(incarnation).has_value();
    if (chosen_one) {
      worker.may_have = std::numeric_limits<int64_t>::max();
    } else if (newest == kNoState) {
      worker.may_have = kNoState;
    } else if (!worker.here) {
      // Left behind: the step that failed for the others may have closed for it.
      worker.may_have = std::min(worker.may_have, newest + 1);
    }
    worker.here = worker.here && !chosen_one;
    worker.failed = worker.failed && !chosen_one;
  }
  first_failure_.reset();
  silent_.clear();
}

}  // namespace sluice::elastic
