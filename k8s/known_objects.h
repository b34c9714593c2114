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
  Object object;  // as it is now; of kGone: as it was last seen
};

// The objects of one selection as far as lists and a watch have told, by uid. However often, late
// or out of order something is told, each object appears once, changes forwards only, and is gone
// once. Pure.
class KnownObjects {
 public:
  // Everything that exists at that version. One older than what has been seen is refused: it would
  // bring back what is gone. The changes are in the order: gone, appeared, changed.
  Result<std::vector<ObjectChange>> OnList(std::vector<Object> objects, const std::string& version);
  // An event of a watch; none of kError.
  std::vector<ObjectChange> OnFrame(WatchFrame frame);

  // From which a watch goes on; empty: nothing was listed yet.
  const std::string& version() const { return version_; }

 private:
  bool IsGone(const std::string& uid) const;
  ObjectChange TakeOut(const std::string& uid);
  void Saw(const std::string& version);

  std::string version_;
  std::map<std::string, Object> objects_;  // by uid
  // The last ones that went, of which a late event may still come.
  std::deque<std::string> gone_;
};

}  // namespace sluice::k8s
