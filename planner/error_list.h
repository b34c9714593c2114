#pragma once

#include "base/status.h"

namespace sluice::planner {

// Collects a statement's errors up to a limit: a thousand mistakes are usually one, repeated, and
// neither reading nor creating the rest (nearest names cost time) would help.
class ErrorList {
 public:
  static constexpr int kMaxErrors = 50;

  void Add(const Status& status) {
    if (status.ok()) {
      return;
    }
    if (full()) {
      more_ = true;
      return;
    }
    status_.Add(status);
    ++count_;
  }
  // Loops that create an error per element stop here.
  bool full() const { return count_ >= kMaxErrors; }
  bool empty() const { return count_ == 0; }
  Status Take() {
    if (full() || more_) {
      status_.Add(InvalidArgument("there may be more errors: these are the first"));
    }
    return std::move(status_);
  }

 private:
  Status status_;
  int count_ = 0;
  bool more_ = false;
};

}  // namespace sluice::planner
