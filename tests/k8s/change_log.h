#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>

#include "k8s/watch.h"

namespace sluice::k8s {

// The events of a watch as texts: "+w" appeared, "~w" changed, "-w" gone. Thread-safe.
class ChangeLog {
 public:
  ObjectWatch::Listener Listener() {
    return [this](const ObjectChange& change) {
      constexpr std::string_view kSigns = "+~-";
      std::string word(1, kSigns[static_cast<size_t>(change.kind)]);
      word += change.object.name;
      if (change.kind != ObjectChange::Kind::kGone && change.object.leaving) {
        word += "(leaving)";
      }
      const std::lock_guard lock(mutex_);
      words_.push_back(word);
      changed_.notify_all();
    };
  }
  // Waits for the next `count` events.
  std::string Take(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return words_.size() >= count; });
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      text += words_.front() + " ";
      words_.pop_front();
    }
    return text;
  }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return words_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> words_;
};

}  // namespace sluice::k8s
