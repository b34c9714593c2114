#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace sluice::elastic {

// What a job measures once a second.
struct ServerLoad {
  uint32_t least = 1, most = 1;  // parameter servers that it may have
  uint32_t asked = 1;            // by the last decision
  uint32_t serving = 1;          // that hold its parameters; not `asked`: they are being moved
  uint32_t workers = 0;          // at work
  double exchange = 0;           // 0 to 1: of the workers' time, what the exchange took
  double rows_per_second = 0;
};

// What is remembered from one decision to the next.
struct ServerScaling {
  // Since when, and at which numbers, it has been measured.
  TimePoint since{};
  uint32_t workers = 0, servers = 0, asked = 0;
  // Since when these servers serve, or are waited for, and the workers at that time.
  TimePoint asked_since{};
  uint32_t asked_workers = 0;
  int samples = 0;
  double exchange = 0, rows_per_second = 0;  // sums of the samples
  // The last server was added to see whether it helps: the rate of these workers without it.
  struct Trial {
    uint32_t workers = 0;
    double rows_per_second = 0;
  };
  std::optional<Trial> trial;
  // So many servers helped this many workers no more than fewer did, or found no room. It is tried
  // again at `until`; if it is in vain again, after twice the time.
  struct Useless {
    uint32_t servers = 0, workers = 0;
    double seconds = 0;
    TimePoint until{};
  };
  std::optional<Useless> useless;
};

struct ServerDecision {
  uint32_t servers = 1;
  std::string reason;  // for people; empty: the number stays
  ServerScaling scaling;
};

// How many parameter servers a job should have. Pure. One more is tried where the exchange takes so
// much of the workers' time that it should be worth half a worker, and stays if the rate rises. One
// fewer is enough where the last one is worth less than a quarter of a worker. If the number of
// workers changes, what was measured before does not count; nor does a second without training. A
// decision does not wait for workers: one that has no room is given up after a minute.
ServerDecision ScaleServers(const ServerLoad& load, ServerScaling scaling, TimePoint now);

}  // namespace sluice::elastic
