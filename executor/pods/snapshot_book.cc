#include "executor/pods/snapshot_book.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "catalog/job_store.h"
#include "executor/pods/pod_job.h"
#include "executor/pods/pod_job.pb.h"

namespace sluice::executor {

SnapshotBook::SnapshotBook(catalog::JobStore& jobs, const Clock& clock, Master self)
    : jobs_(jobs), clock_(clock), self_(std::move(self)) {}

void SnapshotBook::Keep(const std::string& snapshot, const std::string& validation) {
  const Status kept = Record(snapshot, validation, self_.term);
  if (!kept.ok()) {  // its workers keep it, too
    log::Warn("job={} the master's snapshot is not recorded: {}", self_.job, kept.ToString());
  }
}

void SnapshotBook::Hear(const std::string& node, const std::string& snapshot,
                        const std::string& validation) {
  {
    const MutexLock lock(mutex_);
    heard_[node] = clock_.Now();
    if (!recorded_.insert(snapshot).second) {
      return;
    }
  }
  const Status kept = Record(snapshot, validation, 0);
  if (!kept.ok()) {
    log::Warn("job={} a snapshot is not recorded: {}", self_.job, kept.ToString());
    const MutexLock lock(mutex_);
    recorded_.erase(snapshot);  // the next heartbeat repeats it
  }
}

bool SnapshotBook::KeptElsewhere() const {
  const MutexLock lock(mutex_);
  const TimePoint now = clock_.Now();
  return std::any_of(heard_.begin(), heard_.end(), [&](const auto& heard) {
    return heard.first != self_.node && SecondsBetween(heard.second, now) < kFreshSeconds;
  });
}

Result<bool> SnapshotBook::HandedOver() const {
  ASSIGN_OR_RETURN(const catalog::Job row, jobs_.Find(self_.job));
  if (row.state != catalog::JobState::kRunning) {
    return true;
  }
  ASSIGN_OR_RETURN(const auto records, jobs_.Records(self_.job, kSnapshotRecords));
  return std::any_of(records.begin(), records.end(), [this](const auto& record) {
    HeldSnapshot held;
    return held.ParseFromString(record.second) && held.term() > self_.term;
  });
}

Status SnapshotBook::Record(const std::string& snapshot, const std::string& validation,
                            int64_t term) {
  HeldSnapshot held;
  held.set_train(snapshot);
  held.set_validation(validation);
  held.set_term(term);
  return jobs_.KeepRecord(self_.job, kSnapshotRecords + snapshot, held.SerializeAsString());
}

}  // namespace sluice::executor
