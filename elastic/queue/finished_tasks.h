#pragma once

#include <cstddef>
#include <deque>
#include <unordered_set>

#include "elastic/ids.h"

namespace sluice::elastic {

// The tasks that were finished last, by which a report that is repeated, because its answer was
// lost, is recognised.
class FinishedTasks {
 public:
  void Add(TaskId task) {
    tasks_.insert(task);
    order_.push_back(task);
    if (order_.size() > kRemembered) {
      tasks_.erase(order_.front());
      order_.pop_front();
    }
  }
  bool Has(TaskId task) const { return tasks_.contains(task); }

 private:
  // A retry arrives within seconds; fewer tasks than this are finished in that time.
  static constexpr size_t kRemembered = 4096;

  std::unordered_set<TaskId> tasks_;
  std::deque<TaskId> order_;
};

}  // namespace sluice::elastic
