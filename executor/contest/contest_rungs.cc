#include "executor/contest/contest_rungs.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace sluice::executor {
namespace {

constexpr double kRungs[] = {1.0 / 9, 1.0 / 3, 1};
constexpr size_t kKeptOf = 3;  // one in so many candidates goes on

}  // namespace

void ForEachRung(size_t candidates, bool halves,
                 const std::function<std::vector<size_t>(const SearchRung&)>& work) {
  constexpr size_t kCount = std::size(kRungs);
  SearchRung rung;
  rung.candidates.resize(candidates);
  std::iota(rung.candidates.begin(), rung.candidates.end(), 0);
  const size_t first = halves && candidates > kKeptOf ? 0 : kCount - 1;
  for (size_t i = first; i < kCount && !rung.candidates.empty(); ++i) {
    rung.share = kRungs[i];
    rung.number = i - first;
    rung.left = kCount - i;
    std::vector<size_t> best = work(rung);
    best.resize((best.size() + kKeptOf - 1) / kKeptOf);
    rung.candidates = std::move(best);
  }
}

}  // namespace sluice::executor
