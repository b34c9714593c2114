#include <fmt/core.h>

#include <cstdint>
#include <cstring>

#include "executor/processes/frames_internal.h"

namespace sluice::executor {

Result<std::string> Frame(std::string_view message) {
  if (message.size() > kMaxMessageBytes) {
    return ResourceExhausted(
        fmt::format("a message of {} bytes between a process and its launcher; {} are allowed",
                    message.size(), kMaxMessageBytes));
  }
  const uint64_t length = message.size();
  std::string frame(sizeof(length), '\0');
  std::memcpy(frame.data(), &length, sizeof(length));
  frame.append(message);
  return frame;
}

Result<std::optional<std::string>> FrameReader::Next() {
  uint64_t length = 0;
  if (unread_.size() < sizeof(length)) {
    return std::optional<std::string>();
  }
  std::memcpy(&length, unread_.data(), sizeof(length));
  if (length > kMaxMessageBytes) {
    return InvalidArgument(fmt::format("a message of {} bytes is not ours", length));
  }
  if (unread_.size() < sizeof(length) + length) {
    return std::optional<std::string>();
  }
  std::optional<std::string> message = unread_.substr(sizeof(length), length);
  unread_.erase(0, sizeof(length) + length);
  return message;
}

}  // namespace sluice::executor
