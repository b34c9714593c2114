#include <pthread.h>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/sleep.h"
#include "catalog/catalog.h"
#include "server/gateway/housekeeper_internal.h"

namespace sluice::server {
namespace {

// A killed process's tables are to be gone within a minute.
constexpr std::chrono::seconds kRound{20};
constexpr std::chrono::hours kOldJobsRound{1};
// Of one transaction, which is short for others' locks and for VACUUM.
constexpr int64_t kJobsAtOnce = 100;

}  // namespace

Housekeeper::Housekeeper(const SourcePool& sources, std::chrono::hours keep_jobs)
    : sources_(sources), keep_jobs_(keep_jobs), thread_([this](const std::stop_token& end) {
        pthread_setname_np(pthread_self(), "housekeeper");
        Run(end);
      }) {}

void Housekeeper::Run(const std::stop_token& end) const {
  auto old_jobs_due = std::chrono::steady_clock::now();
  while (!end.stop_requested()) {
    const Status kept = Guarded("keeping house", [&] {
      DropLeftovers();
      if (keep_jobs_.count() > 0 && std::chrono::steady_clock::now() >= old_jobs_due) {
        old_jobs_due = std::chrono::steady_clock::now() + kOldJobsRound;
        DropOldJobs(end);
      }
      return OkStatus();
    });
    if (!kept.ok()) {
      log::Warn("cannot keep house: {}", kept.ToString());
    }
    SleepFor(kRound, end);
  }
}

void Housekeeper::DropLeftovers() const {
  for (const auto& [database, catalog] : sources_.Catalogs()) {
    const Status dropped = catalog->DropLeftovers();
    if (!dropped.ok()) {
      log::Debug("what is left of ended statements stays: {}", dropped.ToString());
    }
  }
}

void Housekeeper::DropOldJobs(const std::stop_token& end) const {
  const int64_t before = WallMicros() - std::chrono::microseconds(keep_jobs_).count();
  for (const auto& [database, catalog] : sources_.Catalogs()) {
    const auto jobs = catalog->JobsFor(end);
    Result<int64_t> dropped = jobs->DropEnded(before, kJobsAtOnce);
    while (dropped.ok() && *dropped == kJobsAtOnce) {
      dropped = jobs->DropEnded(before, kJobsAtOnce);
    }
    if (!dropped.ok() && !end.stop_requested()) {
      log::Warn("old jobs stay: {}", dropped.status().ToString());
    }
  }
}

}  // namespace sluice::server
