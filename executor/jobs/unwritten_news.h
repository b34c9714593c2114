#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "catalog/job_store.h"

namespace sluice::executor {

// What has happened in a running job and is not in its row yet. While the database cannot be
// written, the first kMax of each kind are kept. Not thread-safe.
class UnwrittenNews {
 public:
  static constexpr size_t kMax = 10'000;

  using Events = std::vector<catalog::JobEvent>;
  using Metrics = std::vector<catalog::JobMetric>;
  using Notices = std::map<int64_t, std::string>;  // by their times, in microseconds

  void Add(catalog::JobEvent event);
  void Add(catalog::JobMetric metric);
  // The metrics of one moment: all of them or none.
  void AddPoint(const Metrics& point);
  // A job's last ones: kept whatever the limit.
  void AddAtTheEnd(const Metrics& metrics);
  // Whether there are neither events nor metrics.
  bool empty() const { return events_.empty() && metrics_.empty(); }
  const Events& events() const { return events_; }

  // Those so far: they are being written.
  std::pair<Events, Metrics> Take();
  // They could not be written, and come before what has been added since.
  void PutBack(const Events& events, const Metrics& metrics);

  // The time of a notice is that of the call, or a microsecond after the previous notice.
  void AddNotice(const std::string& text, int64_t now_micros);
  Notices TakeNotices() { return std::exchange(notices_, {}); }
  void PutBack(Notices notices) { notices_.merge(notices); }
  // The newest twenty, written or not.
  const Notices& last_notices() const { return last_notices_; }

 private:
  Events events_;
  Metrics metrics_;
  Notices notices_;
  Notices last_notices_;
  int64_t last_notice_ = 0;
};

}  // namespace sluice::executor
