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
      const std::string_view passed = bytes.substr(pass, at - pass);
      lent_ ? host_.ToBorrower(passed) : host_.ToClient(passed);
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
    const bool whole =
        type == 'Z' || type == 'S' || (lent_ ? type == 'A' || type == 'E' : type == 'C');
    if (whole && bytes.size() - at < kHeaderBytes + body) {
      break;
    }
    if (lent_) {
      SeeLent(type, bytes.substr(at, whole ? kHeaderBytes + body : 0));
      server_drops_ = type == 'A';
      if (server_drops_) {
        flush();
      }
      server_left_ = body;
      at += kHeaderBytes;
      pass = server_drops_ ? at : pass;
      continue;
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
      SeeTag(body);
      return Answered("E");
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

// Without a Sync behind it the back end does not say how a transaction block stands.
void Conversation::SeeTag(std::string_view body) {
  if (expected_.empty() || expected_.front().type != 'E') {
    return;
  }
  BodyReader reader(body);
  const std::string_view tag = reader.String();
  if (tag == "BEGIN" || tag == "START TRANSACTION") {
    status_ = 'T';
  } else if (tag == "COMMIT" || tag == "PREPARE TRANSACTION") {
    status_ = 'I';
  }
}

// `message`: of Z, S, A and E, whole.
void Conversation::SeeLent(char type, std::string_view message) {
  switch (type) {
    case 'Z':
      status_ = message.size() > kHeaderBytes ? message[kHeaderBytes] : 'I';
      copying_in_ = false;
      borrowers_queries_ = std::max(0, borrowers_queries_ - 1);
      if (borrowers_queries_ == 0 && borrower_left_ == 0) {
        KeepAwake();
      }
      break;
    case 'E':
      if (IsFatal(message.substr(std::min(message.size(), kHeaderBytes)))) {
        Says(message);  // nobody hears more of this session
      }
      break;
    case 'S': {
      BodyReader reader(message.substr(kHeaderBytes));
      const std::string name(reader.String());
      parameters_[name] = reader.String();
      break;
    }
    case 'A':
      Says(message);
      break;
    case 'G':
      borrower_copies_ = true;
      break;
    default:
      break;
  }
}

void Conversation::Lend() {
  lent_ = true;
  borrowers_queries_ = 0;
  borrower_copies_ = false;
  borrower_held_.clear();
  borrower_left_ = 0;
}

void Conversation::FromBorrower(std::string_view bytes) {
  std::string joined = std::exchange(borrower_held_, {});
  if (!joined.empty()) {
    joined += bytes;
    bytes = joined;
  }
  size_t at = 0;
  while (at < bytes.size() && lent_) {
    if (borrower_left_ > 0) {
      const size_t part = std::min(borrower_left_, bytes.size() - at);
      host_.ToServer(bytes.substr(at, part));
      at += part;
      borrower_left_ -= part;
      continue;
    }
    if (bytes.size() - at < kHeaderBytes) {
      borrower_held_ = bytes.substr(at);
      break;
    }
    const char type = bytes[at];
    if (type == 'X') {
      TakeBack();
      break;
    }
    borrowers_queries_ += type == 'Q' || type == 'S' || type == 'F' ? 1 : 0;
    borrower_copies_ = borrower_copies_ && type != 'c' && type != 'f';
    borrower_left_ = ReadUint32(bytes.substr(at + 1)) - kLengthBytes;
    host_.ToServer(bytes.substr(at, kHeaderBytes));
    at += kHeaderBytes;
  }
}

void Conversation::TakeBack() {
  if (!std::exchange(lent_, false)) {
    return;
  }
  if (borrower_copies_) {
    std::string fail;
    AppendMessage(fail, 'f', std::string_view("given up\0", 9));
    host_.ToServer(fail);
  } else if (borrowers_queries_ > 0) {
    host_.CancelServer();
  }
  for (; borrowers_queries_ > 0; --borrowers_queries_) {
    Expect('Q', Hears::kNothing);
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
    // The rest of the script, or of the pipeline, does not run. ReadyForQuery is still to come.
    AbortFailed();
  }
  return hears != Hears::kNothing;
}

// The database has said an error, which has failed its own block.
void Conversation::AbortFailed() {
  steps_.clear();
  if (!in_script_) {
    group_failed_ = true;
    return;
  }
  steps_.push_back({.kind = Step::Kind::kRollback});
  steps_.push_back({.kind = Step::Kind::kReady});
}

}  // namespace sluice::server::pgwire
