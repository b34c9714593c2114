#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "k8s/object.h"
#include "k8s/watch_frames.h"

namespace sluice::k8s {

struct ObjectChange {
  enum class Kind { kAppeared, kChanged, kGone };
  Kind kind = Kind::kAppeared;
  Object object;  // its current state; for kGone: as last seen
};

// The objects of one selection as reported by lists and a watch, by uid. However often, late or out
// of order something is reported, each object appears once, changes only forwards, and goes once.
// Pure.
class KnownObjects {
 public:
  // Everything that exists at that version. A list older than what has been seen is refused: it
  // would bring back objects that are gone. The changes are in the order: gone, appeared, changed.
  Result<std::vector<ObjectChange>> OnList(std::vector<Object> objects, const std::string& version);
  // An event of a watch, not kError.
  std::vector<ObjectChange> OnFrame(WatchFrame frame);

  // From which a watch continues; empty: nothing was listed yet.
  const std::string& version() const { return version_; }

 private:
  bool IsGone(const std::string& uid) const;
  ObjectChange TakeOut(const std::string& uid);
  void Saw(const std::string& version);

  std::string version_;
  std::map<std::string, Object> objects_;  // by uid
  // The last ones that went, for which late events may still arrive.
  std::deque<std::string> gone_;
};

}  // namespace sluice::k8s
