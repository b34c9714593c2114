#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace sluice::executor {

// The largest message between a process and its launcher: a plan with its vocabularies, and how the
// data is cut. Weights travel between the processes of a job, in parts.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 30;

// A message on a stream: its length in eight bytes, then its bytes.
Result<std::string> Frame(std::string_view message);

// Cuts a stream into the messages that were framed into it.
class FrameReader {
 public:
  void Append(const char* bytes, size_t count) { unread_.append(bytes, count); }
  // The next whole message; nothing while it has not all arrived. An error: the stream is damaged.
  Result<std::optional<std::string>> Next();

 private:
  std::string unread_;
};

}  // namespace sluice::executor
