#include "k8s/watch_frames.h"

#include <fmt/core.h>

#include <utility>

#include "k8s/json_internal.h"

namespace sluice::k8s {

Status FrameDecoder::Feed(std::string_view bytes, std::vector<std::string>& frames) {
  RETURN_IF_ERROR(failure_);
  size_t begin = 0;  // of the bytes that belong to the frame and have not been added to it
  for (size_t at = 0; at < bytes.size(); ++at) {
    const char character = bytes[at];
    if (depth_ == 0) {
      if (character == ' ' || character == '\n' || character == '\r' || character == '\t') {
        continue;
      }
      if (character != '{') {
        return failure_ = InvalidArgument("the watch sent something that is not a JSON object");
      }
      begin = at;
      depth_ = 1;
    } else if (in_string_) {
      in_string_ = escaped_ || character != '"';
      escaped_ = !escaped_ && character == '\\';
    } else if (character == '"') {
      in_string_ = true;
    } else if (character == '{' || character == '[') {
      if (++depth_ > kMaxJsonDepth) {
        return failure_ = InvalidArgument(fmt::format(
                   "the watch sent an object nested deeper than {} levels", kMaxJsonDepth));
      }
    } else if ((character == '}' || character == ']') && --depth_ == 0) {
      frame_.append(bytes.substr(begin, at + 1 - begin));
      frames.push_back(std::exchange(frame_, {}));
    }
    if (depth_ > 0 && frame_.size() + (at - begin) > kMaxFrameBytes) {
      return failure_ = InvalidArgument(
                 fmt::format("the watch sent an object of more than {} MiB", kMaxFrameBytes >> 20));
    }
  }
  if (depth_ > 0) {
    frame_.append(bytes.substr(begin));
  }
  return OkStatus();
}

Result<WatchFrame> ReadWatchFrame(std::string_view json) {
  constexpr std::string_view kWhat = "an event of the watch";
  ASSIGN_OR_RETURN(const rapidjson::Document document, ParseJsonObject(json, kWhat));
  const rapidjson::Value* value = FindIn(document, {"object"});
  const std::string_view type = TextIn(document, {"type"});
  if (value == nullptr || !value->IsObject()) {
    return InvalidArgument(fmt::format("{} has no object", kWhat));
  }
  WatchFrame frame;
  if (type == "ERROR") {
    frame.kind = WatchFrame::Kind::kError;
    frame.code = static_cast<int>(NumberIn(*value, {"code"}));
    frame.reason = TextIn(*value, {"reason"});
    frame.message = TextIn(*value, {"message"});
    return frame;
  }
  if (type == "BOOKMARK") {
    frame.kind = WatchFrame::Kind::kBookmark;
    frame.object.resource_version = TextIn(*value, {"metadata", "resourceVersion"});
    return frame;
  }
  if (type == "ADDED") {
    frame.kind = WatchFrame::Kind::kAdded;
  } else if (type == "MODIFIED") {
    frame.kind = WatchFrame::Kind::kModified;
  } else if (type == "DELETED") {
    frame.kind = WatchFrame::Kind::kDeleted;
  } else {
    return InvalidArgument(fmt::format("{} has the unknown type '{}'", kWhat, type.substr(0, 40)));
  }
  ASSIGN_OR_RETURN(frame.object, ReadObject(ToJson(*value), kWhat));
  if (frame.object.uid.empty() || frame.object.resource_version.empty()) {
    return InvalidArgument(fmt::format("{} is of an object without uid or version", kWhat));
  }
  return frame;
}

}  // namespace sluice::k8s
