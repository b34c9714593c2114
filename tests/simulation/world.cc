#include "tests/simulation/world.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

namespace sluice::elastic::simulation {

void World::At(double time, std::function<void()> event) {
  events_.push({std::max(time, now_), next_++, std::move(event)});
}

bool World::Step() {
  if (events_.empty()) {
    return false;
  }
  const Event event = events_.top();
  events_.pop();
  now_ = event.time;
  event.what();
  return true;
}

double World::Exponential(double mean) {
  return -mean * std::log(1 - Uniform());
}

void World::Tell(const std::string& line) {
  if (listener) {
    listener(fmt::format("{:9.3f} {}", now_, line));
  }
}

}  // namespace sluice::elastic::simulation
