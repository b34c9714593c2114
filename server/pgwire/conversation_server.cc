#include <algorithm>
#include <utility>

#include "server/pgwire/conversation.h"

// The back end's messages.
namespace sluice::server::pgwire {
namespace {

// Limit for a row that we read: it has the parameters of one statement.
constexpr size_t kMostAnswerBytes = size_t{16} << 20;
// Bytes of a RowDescription column before its type's OID (table and number) and after it (size,
// modifier, format).
constexpr size_t kColumnPlaceBytes = 6;
constexpr size_t kColumnFormBytes = 8;
constexpr std::string_view kClientEncoding("client_encoding\0", 16);

}  // namespace

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
    const size_t length = LoadBigEndian<uint32_t>(bytes.substr(at + 1));
    if (length < kLengthBytes) {
      flush();
      return ProtocolError("the server does not keep to the protocol");
    }
    const size_t body = length - kLengthBytes;
    // A client that makes the server answer more than is counted here would answer our questions.
    constexpr std::string_view kUnasked = "NSAE";
    const bool asked = lent_ || !expected_.empty() || kUnasked.find(type) != std::string_view::npos;
    if (!asked) {
      flush();
      return ProtocolError("the server has answered what nothing was asked for");
    }
    if (!lent_ && (type == 'C' || type == 'E') && !SeeCopyEnd(type == 'E')) {
      flush();
      return ProtocolError("a COPY has failed that had a Sync among its rows");
    }
    if ((type == 'd' || type == 'D') && PassesRows()) {  // nearly all of the traffic
      const size_t part = std::min(kHeaderBytes + body, bytes.size() - at);
      server_drops_ = false;
      server_left_ = kHeaderBytes + body - part;
      at += part;
      continue;
    }
    const bool ours = AsksForRow() && (type == 'T' || type == 'D') && body <= kMostAnswerBytes;
    const bool whole =
        ours || type == 'Z' || type == 'S' || (lent_ ? type == 'A' || type == 'E' : type == 'C');
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
  if (AsksForRow() && !body.empty() && (type == 'T' || type == 'D')) {
    TakeAnswer(type, body);
  }
  switch (type) {
    case 'Z':
      return SeeReady(body.empty() ? 'I' : body.front());
    case 'S': {
      const bool ours = switched_ > 0 && body.starts_with(kClientEncoding);
      SeeParameter(body);
      return !ours;
    }
    case 'A':
      return true;
    case 'N':
      return heard || AsksForRow();
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
      SeeCopyBegin();
      return heard;
    default:
      return heard;
  }
}

// A server skips a Sync that it reads during a COPY: there, those that were sent with the Execute.
void Conversation::SeeCopyBegin() {
  copying_in_ = true;
  copy_open_ = true;
  copy_has_rows_ = false;
  copy_has_sync_ = false;
  if (!expected_.empty() && expected_.front().type == 'E') {
    for (auto sync = std::next(expected_.begin()); sync != expected_.end() && sync->type == 'S';
         ++sync) {
      sync->skipped_by_copy = true;
    }
  }
}

// What was sent before the rows was read before them. A COPY that fails without any (in a trigger
// before the statement) has read nothing: the server still answers every Sync.
bool Conversation::SeeCopyEnd(bool failed) {
  if (!std::exchange(copy_open_, false)) {
    return true;
  }
  if (failed && copy_has_sync_) {  // it may have read the Sync, or not
    return false;
  }
  if (!failed || copy_has_rows_) {
    std::erase_if(expected_, [](const Expected& sync) { return sync.skipped_by_copy; });
  }
  for (Expected& sync : expected_) {
    sync.skipped_by_copy = false;
  }
  return true;
}

// Rows, and lines of COPY, pass unchanged.
bool Conversation::PassesRows() const {
  return lent_ || expected_.empty() || expected_.front().hears == Hears::kAll ||
         expected_.front().hears == Hears::kAllButReady;
}

void Conversation::TakeAnswer(char type, std::string_view body) {
  BigEndianReader reader(body);
  const uint16_t count = reader.Take<uint16_t>();
  if (type == 'T') {
    answer_ = AnsweredRow();
    for (uint16_t i = 0; i < count && reader.ok(); ++i) {
      reader.String();
      reader.Bytes(kColumnPlaceBytes);
      answer_->types.push_back(reader.Take<uint32_t>());
      reader.Bytes(kColumnFormBytes);
    }
    return;
  }
  if (!answer_.has_value()) {
    answer_ = AnsweredRow();
  }
  for (uint16_t i = 0; i < count && reader.ok() && answer_->values.size() < count; ++i) {
    const uint32_t bytes = reader.Take<uint32_t>();
    constexpr uint32_t kNull = 0xffffffffU;
    if (bytes == kNull) {
      answer_->values.emplace_back(std::nullopt);
      continue;
    }
    const std::string_view value = reader.Bytes(bytes);
    const Result<std::string> utf8 = Utf8Of(value);
    answer_->values.emplace_back(utf8.ok() ? *utf8 : std::string(value));
  }
}

// Until a Sync, the back end does not report the state of the transaction block.
void Conversation::SeeTag(std::string_view body) {
  if (expected_.empty() || expected_.front().type != 'E') {
    return;
  }
  BigEndianReader reader(body);
  const std::string_view tag = reader.String();
  if (tag == "BEGIN" || tag == "START TRANSACTION") {
    status_ = 'T';
  } else if (tag == "COMMIT" || tag == "PREPARE TRANSACTION") {
    status_ = 'I';
  }
}

// While the back end uses another encoding for our sake, the client's encoding stays as it was.
void Conversation::SeeParameter(std::string_view body) {
  BigEndianReader reader(body);
  const std::string name(reader.String());
  const std::string value(reader.String());
  if (switched_ > 0 && body.starts_with(kClientEncoding)) {
    backend_encoding_ = value;
    return;
  }
  parameters_[name] = value;
  readable_ = IsReadable(parameters_);
  FindEncoding();
}

// `message`: whole, for Z, S, A and E.
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
        server_has_ended_ = true;
        Says(message);  // no one else receives this session's output
      }
      break;
    case 'S':
      SeeParameter(message.substr(kHeaderBytes));
      break;
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
  if (!lent_) {
    return;
  }
  size_t at = 0;
  bool ends = false;
  while (at < bytes.size()) {
    if (borrower_left_ > 0) {
      const size_t part = std::min(borrower_left_, bytes.size() - at);
      at += part;
      borrower_left_ -= part;
      continue;
    }
    ends = bytes[at] == 'X';
    if (ends || bytes.size() - at < kHeaderBytes) {
      break;
    }
    const char type = bytes[at];
    borrowers_queries_ += type == 'Q' || type == 'S' || type == 'F' ? 1 : 0;
    borrower_copies_ = borrower_copies_ && type != 'c' && type != 'f';
    borrower_left_ = LoadBigEndian<uint32_t>(bytes.substr(at + 1)) - kLengthBytes;
    at += kHeaderBytes;
  }
  borrower_held_ = ends ? "" : bytes.substr(at);
  host_.ToServer(bytes.substr(0, at));  // together: the server wakes up for each piece
  if (ends) {
    TakeBack();
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

// Answers the message that is due, if its type is one of `types`.
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
      const bool of_encoding = switched_ > 0 && answered.hears == Hears::kNothing;
      if (status_ == 'I' && !of_encoding) {
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
    server_has_ended_ = true;
    return true;  // the server closes the connection
  }
  const Hears hears = expected_.front().hears;
  const char type = expected_.front().type;
  if (type != 'Q' && type != 'F') {
    // The server skips everything up to Sync.
    while (!expected_.empty() && expected_.front().type != 'S') {
      expected_.pop_front();
    }
    group_failed_ = group_failed_ || expected_.empty();
    if (group_failed_ && in_script_) {  // a Query that came before the Sync, and so does not run
      steps_.clear();
      in_script_ = false;
    }
  }
  if (hears == Hears::kRow ||
      ((type == 'Q' || type == 'F') && (hears == Hears::kAllButReady || hears == Hears::kErrors))) {
    // The rest of the script or pipeline does not run. ReadyForQuery is still to come.
    AbortFailed();
  }
  return hears != Hears::kNothing;
}

// After an error from the database, which has already failed its own block.
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
