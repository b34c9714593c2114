#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::executor {

// One round of a search: these candidates are trained for this share of a full training.
struct SearchRung {
  std::vector<size_t> candidates;
  double share = 1;
  size_t number = 0;  // from 0
  size_t left = 1;    // rounds, with this one
};

// Calls `work` for each round of a search over candidates 0, 1, ...; it returns those that go on,
// the best first. Successive halving (Jamieson and Talwalkar, 2016), with a third going on: a ninth
// of a training for all, a third for the best third, and all of it for the best third of those.
// Without `halves`, and for few candidates, one round of full trainings. Ends early if none goes
// on.
void ForEachRung(size_t candidates, bool halves,
                 const std::function<std::vector<size_t>(const SearchRung&)>& work);

}  // namespace sluice::executor
