#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "elastic/ids.h"

// The progress that the caller of a training receives.
namespace sluice::elastic {

struct Progress {
  int64_t rows_done = 0;   // training rows committed, all epochs
  int64_t rows_read = 0;   // from the database, including repeated reads
  int64_t rows_total = 0;  // estimated rows x epochs
  double rows_per_second = 0;
  Epoch epoch = kNoEpoch;  // current
  uint32_t epochs = 0;
  double loss = 0;  // mean over the rows of the last second or so
  std::vector<std::pair<std::string, double>> metrics;  // last evaluation
  int workers = 0;
  // Parameter servers that it has, or is to have where it has fewer; 0: none, or not known.
  uint32_t servers = 0;
  // Each of them holds what it is to hold: one may be lost, and nothing with it.
  bool servers_complete = false;
  double seconds_left = 0;
};

// Called at most once a second while a job runs, once at each epoch's end, and once when it fails
// or is cancelled; from one thread at a time.
using ProgressCallback = std::function<void(const Progress&)>;

// The event that a process waits for the database; its detail is for the caller of the job.
inline constexpr char kDatabaseWaits[] = "database_waits";
// Rows that memory has no room for cannot be kept on the disk either; for the caller, too.
inline constexpr char kRowsReadAgain[] = "rows_read_again";

// The kernel killed a process of the job for lack of memory; for the caller, too.
inline constexpr char kKilledByKernel[] = "killed_for_memory";

struct EventCallback {
  std::function<void(const std::string& kind, const std::string& detail)> on_event;
};

}  // namespace sluice::elastic
