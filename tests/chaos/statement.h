#pragma once

#include <cstdint>
#include <string>

#include "tests/chaos/schedule.h"

namespace sluice::chaos {

struct Sizes {
  int64_t rows = 150'000;  // of each table
  int epochs = 3;          // of the asynchronous modes
  int synchronous_epochs = 2;
  double auc_tolerance = 0.001;

  int64_t held_out_rows() const { return rows / 4; }
};

inline constexpr char kModel[] = "chaos_model";
inline constexpr int kWorkers = 4, kServers = 3, kStaleness = 3;

// The largest number.
int EpochsOf(const Job& job, const Sizes& sizes);
// `checkpoints`: the job's folder inside the gateway's root, if it writes any.
std::string StatementOf(const Job& job, const Sizes& sizes, int workers,
                        const std::string& checkpoints);

}  // namespace sluice::chaos
