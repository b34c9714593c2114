#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "elastic/ids.h"
#include "elastic/queue/ledger.h"

namespace sluice::elastic {

// What is known of a shard some of whose ranges have been closed, until the last one is.
struct OpenShard {
  int64_t rows = 0;        // of closed ranges
  bool cut_short = false;  // by max_batches: its number of rows is unknown
  std::optional<Ledger::Skipped> skipped;

  // These batches are given up, too.
  void Skip(Ledger::Skipped further) {
    if (skipped.has_value()) {
      further.first_batch = std::min(further.first_batch, skipped->first_batch);
      further.last_batch = std::max(further.last_batch, skipped->last_batch);
    }
    skipped = further;
  }

  // All ranges of the shard are closed.
  void Settle(ShardId shard, Ledger* ledger) const {
    if (skipped.has_value()) {
      ledger->Skip(*skipped, rows);
    } else if (!cut_short) {
      ledger->ShardDone(shard, rows);
    }
  }
};

}  // namespace sluice::elastic
