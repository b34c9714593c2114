#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "k8s/watch_frames.h"
#include "tests/fuzz/target.h"

namespace {

using sluice::k8s::FrameDecoder;

struct Decoded {
  bool ok = true;
  std::vector<std::string> frames;
  bool operator==(const Decoded&) const = default;
};

Decoded Decode(std::string_view stream, size_t part) {
  FrameDecoder decoder;
  Decoded decoded;
  for (size_t at = 0; at < stream.size() && decoded.ok; at += part) {
    decoded.ok = decoder.Feed(stream.substr(at, part), decoded.frames).ok();
  }
  return decoded;
}

}  // namespace

// Bytes that an API server, or an impostor, sends on a watch. Law: the result does not depend on
// where the bytes are split.
FUZZ_TARGET(watch_frames) {
  if (size < 2) {
    return 0;
  }
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Decoded whole = Decode(stream, stream.size());
  if (!(Decode(stream, size_t{1} + data[0] % 16) == whole)) {
    std::fprintf(stderr, "cut elsewhere, other frames\n");
    std::abort();
  }
  for (const std::string& frame : whole.frames) {
    const auto read = sluice::k8s::ReadWatchFrame(frame);
    if (read.ok() && read->kind == sluice::k8s::WatchFrame::Kind::kAdded &&
        (read->object.uid.empty() || read->object.name.empty())) {
      std::fprintf(stderr, "half an object\n");
      std::abort();
    }
  }
  return 0;
}
