#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "k8s/object.h"

namespace sluice::k8s {

// An object is stored in at most 1.5 MiB; larger frames are not from a watch.
inline constexpr size_t kMaxFrameBytes = size_t{8} << 20;

// Cuts a watch's bytes, in whatever pieces they arrive, into JSON objects. Pure; holds at most
// kMaxFrameBytes.
class FrameDecoder {
 public:
  // Appends the objects that are now complete. An error is final: nothing may follow it.
  Status Feed(std::string_view bytes, std::vector<std::string>& frames);

 private:
  Status failure_;
  std::string frame_;  // its beginning; empty: between two frames
  int depth_ = 0;
  bool in_string_ = false;
  bool escaped_ = false;
};

struct WatchFrame {
  enum class Kind { kAdded, kModified, kDeleted, kBookmark, kError };
  Kind kind = Kind::kAdded;
  Object object;  // for a bookmark: only the version
  // For an error: the code of its Status (410: the version is too old), reason and message.
  int code = 0;
  std::string reason, message;
};

Result<WatchFrame> ReadWatchFrame(std::string_view json);

}  // namespace sluice::k8s
