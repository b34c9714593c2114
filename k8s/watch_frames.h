#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/object.h"

namespace sluice::k8s {

// An object is stored in at most 1.5 MiB; what is larger is no watch.
inline constexpr size_t kMostFrameBytes = size_t{8} << 20;

// Cuts a watch's bytes, however they arrive, into the JSON objects that they are. Pure; holds at
// most kMostFrameBytes.
class FrameDecoder {
 public:
  // Appends the objects that are whole now. An error is for good: nothing follows it.
  Status Feed(std::string_view bytes, std::vector<std::string>& frames);

 private:
  Status failure_;
  std::string frame_;  // its beginning; empty: between two
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

struct WatchFrame {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  Object object;  // of a bookmark: nothing but the version
  // Of an error: the code of its Status (410: too old a version), reason and message.
  int code = 0;
  std::string reason, message;
};

Result<WatchFrame> ReadWatchFrame(std::string_view json);

}  // namespace sluice::k8s
