#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"

namespace sluice::catalog {
class JobStore;
}

namespace sluice::executor {

// Which processes keep a job's snapshots alive, as its master knows, and as the next one will find
// in the job's records. Thread-safe.
class SnapshotBook {
 public:
  // A process that has said nothing for this long may be gone: three heartbeats.
  static constexpr double kFreshSeconds = 3;

  struct Master {
    int64_t job = 0;
    int64_t term = 0;
    std::string node;
  };
  SnapshotBook(catalog::JobStore& jobs, const Clock& clock, Master self);

  // This master keeps them.
  void Keep(const std::string& snapshot, const std::string& validation);
  // A worker on that node keeps them. Repeated; each snapshot is recorded once.
  void Hear(const std::string& node, const std::string& snapshot, const std::string& validation)
      EXCLUDES(mutex_);
  // A process on another node than this master's keeps them, as was heard a moment ago.
  bool KeptElsewhere() const EXCLUDES(mutex_);
  // A later master keeps them, or the job has ended. Asks the database.
  Result<bool> HandedOver() const;

 private:
  Status Record(const std::string& snapshot, const std::string& validation, int64_t term);

  catalog::JobStore& jobs_;
  const Clock& clock_;
  const Master self_;
  mutable Mutex mutex_;
  std::set<std::string> recorded_ GUARDED_BY(mutex_);
  std::map<std::string, TimePoint> heard_ GUARDED_BY(mutex_);  // by node
};

}  // namespace sluice::executor
