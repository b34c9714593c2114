#include <algorithm>
#include <utility>

#include "server/pgwire/conversation.h"

// What the back end says.
namespace sluice::server::pgwire {

void Conversation::FromServer(std::string_view bytes) {
  std::string joined;
  if (!server_held_.empty()) {
    joined = std::exchange(server_held_, {});
    joined += bytes;
    bytes = joined;
  }
  size_t at = 0;
  size_t pass = 0;
  const auto flush = [&] {
    if (at > pass) {
      host_.ToClient(bytes.substr(pass, at - pass));
    }
    pass = at;
  };
  while (at < bytes.size()) {
    if (server_left_ > 0) {
      const size_t part = std::min(server_left_, bytes.size() - at);
      at += part;
      server_left_ -= part;
      pass = server_drops_ ? at : pass;
      continue;
    }
    if (!said_.empty()) {
      flush();
      host_.ToClient(std::exchange(said_, {}));
    }
    if (bytes.size() - at < kHeaderBytes) {
      break;
    }
    const char type = bytes[at];
    const size_t length = ReadUint32(bytes.substr(at + 1));
    if (length < kLengthBytes) {
      flush();
      return ProtocolError("the server does not keep to the protocol");
    }
    const size_t body = length - kLengthBytes;
    const bool whole = type == 'Z' || type == 'S';
    if (whole && bytes.size() - at < kHeaderBytes + body) {
      break;
    }
    const bool heard =
        SeeServer(type, whole ? bytes.substr(at + kHeaderBytes, body) : std::string_view());
    if (!heard) {
      flush();
    }
    server_drops_ = !heard;
    server_left_ = body;
    at += kHeaderBytes;
    pass = heard ? pass : at;
  }
  flush();
  server_held_ = bytes.substr(at);
  if (server_left_ == 0 && server_held_.empty() && !said_.empty()) {
    host_.ToClient(std::exchange(said_, {}));
  }
  Advance();
  ProcessHeld();
}

bool Conversation::SeeServer(char type, std::string_view body) {
  const bool heard = expected_.empty() || expected_.front().hears == Hears::kAll ||
                     expected_.front().hears == Hears::kAllButReady;
  switch (type) {
    case 'Z':
      return SeeReady(body.empty() ? 'I' : body.front());
    case 'S': {
      BodyReader reader(body);
      const std::string name(reader.String());
      parameters_[name] = reader.String();
      readable_ = IsReadable(parameters_);
      return true;
    }
    case 'A':
      return true;
    case 'E':
      return SeeError();
    case '1':
      return Answered("P");
    case '2':
      return Answered("B");
    case '3':
      return Answered("C");
    case 'T':
    case 'n':
      return Answered("D");
    case 'C':
    case 'I':
    case 's':
      return Answered("E");
    case 'G':
      copying_in_ = true;
      if (!expected_.empty() && expected_.front().type == 'E') {
        // A Sync that the server meets while it copies does nothing.
        const auto next = std::next(expected_.begin());
        expected_.erase(next, std::find_if(next, expected_.end(), [](const Expected& expected) {
                          return expected.type != 'S';
                        }));
      }
      return heard;
    default:
      return heard;
  }
}

// The answer to the message that is due, if that is one of `types`.
bool Conversation::Answered(std::string_view types) {
  if (expected_.empty()) {
    return true;
  }
  const Hears hears = expected_.front().hears;
  if (types.find(expected_.front().type) != std::string_view::npos) {
    expected_.pop_front();
  }
  return hears == Hears::kAll || hears == Hears::kAllButReady;
}

bool Conversation::SeeReady(char status) {
  status_ = status;
  copying_in_ = false;
  while (!expected_.empty()) {
    const Expected answered = expected_.front();
    expected_.pop_front();
    if (answered.type == 'Q' || answered.type == 'S' || answered.type == 'F') {
      if (status_ == 'I') {
        DropPortals();
      }
      return answered.hears == Hears::kAll;
    }
  }
  return true;
}

bool Conversation::SeeError() {
  copying_in_ = false;
  if (expected_.empty()) {
    return true;  // the server ends the connection
  }
  const Hears hears = expected_.front().hears;
  const char type = expected_.front().type;
  if (type != 'Q' && type != 'F') {
    // It skips all that comes until Sync.
    while (!expected_.empty() && expected_.front().type != 'S') {
      expected_.pop_front();
    }
    group_failed_ = group_failed_ || expected_.empty();
  } else if (hears == Hears::kAllButReady || hears == Hears::kErrors) {
    // A statement of a script: its rest does not run. ReadyForQuery is still to come.
    AbortFailedScript();
  }
  return hears != Hears::kNothing;
}

// The same for an error of the database, which has failed its own block.
void Conversation::AbortFailedScript() {
  if (!in_script_) {
    return;
  }
  steps_.clear();
  steps_.push_back({.kind = Step::Kind::kRollback});
  steps_.push_back({.kind = Step::Kind::kReady});
}

}  // namespace sluice::server::pgwire
