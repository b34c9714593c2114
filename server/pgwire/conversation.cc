#include "server/pgwire/conversation.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "server/pgwire/sql/prepared_text.h"

// The client's messages.
namespace sluice::server::pgwire {

Conversation::Conversation(Host& host, std::map<std::string, std::string> parameters,
                           catalog::Dialect dialect)
    : host_(host), parameters_(std::move(parameters)), dialect_(dialect) {
  readable_ = IsReadable(parameters_);
  FindEncoding();
}

void Conversation::FindEncoding() {
  const auto client = parameters_.find("client_encoding");
  backend_encoding_ = client == parameters_.end() ? "" : client->second;
  // A server that does not know its texts' encoding does not convert them.
  const auto server = parameters_.find("server_encoding");
  const bool converts = server == parameters_.end() || server->second != "SQL_ASCII";
  encoding_ = converts ? ClientEncoding::Find(backend_encoding_) : std::nullopt;
}

Result<std::string> Conversation::Utf8Of(std::string_view text) const {
  return encoding_.has_value() ? encoding_->ToUtf8(text) : std::string(text);
}

Result<std::string> Conversation::ForServer(std::string_view utf8) const {
  return encoding_.has_value() && switched_ == 0 ? encoding_->FromUtf8(utf8) : std::string(utf8);
}

void Conversation::FromClient(std::string_view bytes) {
  if (!held_.empty() || (blocked() && !copying_in_)) {
    held_ += bytes;
    ProcessHeld();
    return;
  }
  wanted_ = 0;
  held_ = std::string(bytes.substr(Consume(bytes)));
}

void Conversation::ProcessHeld() {
  if (held_.size() <= wanted_ || (blocked() && !copying_in_)) {
    return;
  }
  wanted_ = 0;
  const std::string bytes = std::exchange(held_, {});
  held_ = bytes.substr(Consume(bytes));
}

size_t Conversation::unfinished_bytes() const {
  const bool kept_by_back_end =
      dialect_ == catalog::Dialect::kSqlite && client_left_ > 0 && !client_drops_;
  return kept_by_back_end ? passed_on_ : wanted_ > 0 ? wanted_ + 1 : 0;
}

// Returns how many bytes are done with.
size_t Conversation::Consume(std::string_view bytes) {
  size_t at = 0;
  size_t pass = 0;  // everything seen from here on is to be passed on
  const auto flush = [&] {
    if (at > pass) {
      host_.ToServer(bytes.substr(pass, at - pass));
    }
    pass = at;
  };
  while (at < bytes.size() && (!blocked() || copying_in_)) {
    if (client_left_ > 0) {
      const size_t part = std::min(client_left_, bytes.size() - at);
      at += part;
      client_left_ -= part;
      pass = client_drops_ ? at : pass;
      continue;
    }
    if (bytes.size() - at < kHeaderBytes) {
      break;
    }
    const char type = bytes[at];
    const size_t length = LoadBigEndian<uint32_t>(bytes.substr(at + 1));
    if (length < kLengthBytes || length > kMaxMessageBytes) {
      flush();
      ProtocolError("invalid message length");
      break;
    }
    const size_t body = length - kLengthBytes;
    Handling handling = HandlingOf(type);
    handling =
        handling == Handling::kWhole && body > parser::kMaxScriptBytes ? Handling::kPass : handling;
    if (handling == Handling::kDrop) {
      flush();
      client_drops_ = true;
      client_left_ = body;
      at += kHeaderBytes;
      pass = at;
      continue;
    }
    if (handling == Handling::kWhole) {
      if (bytes.size() - at < kHeaderBytes + body) {
        wanted_ = kHeaderBytes + body - 1;
        break;
      }
      flush();
      if (RoutesAside(type, bytes.substr(at + kHeaderBytes, body))) {
        break;
      }
      if (Take(type, bytes.substr(at + kHeaderBytes, body))) {
        at += kHeaderBytes + body;
        pass = at;
        continue;
      }
    }
    Account(type);
    client_drops_ = false;
    client_left_ = body;
    passed_on_ = kHeaderBytes + body;
    at += kHeaderBytes;
  }
  flush();
  return at;
}

Conversation::Handling Conversation::HandlingOf(char type) const {
  if (copying_in_) {
    return Handling::kPass;
  }
  if (type == 'X') {
    return Handling::kWhole;
  }
  if (group_failed_ && type != 'S') {
    return Handling::kDrop;
  }
  switch (type) {
    case 'Q':
    case 'P':
      return Handling::kWhole;
    case 'B':
    case 'D':
    case 'E':
    case 'C':
      return statements_.empty() && portals_.empty() ? Handling::kPass : Handling::kWhole;
    case 'S':
      return wrapped_ ? Handling::kWhole : Handling::kPass;
    default:
      return Handling::kPass;
  }
}

// Records which answer to expect for a message that is passed on.
void Conversation::Account(char type) {
  switch (type) {
    case 'Q':
    case 'F':
      Expect(type, Hears::kAll);
      group_open_ = false;
      break;
    case 'S':
      Expect(type, Hears::kAll);
      if (copying_in_) {
        expected_.back().skipped_by_copy = true;
        copy_has_sync_ = copy_has_sync_ || copy_has_rows_;
      } else {
        group_open_ = false;
        group_dirty_ = false;
        group_failed_ = false;
      }
      break;
    case 'P':
    case 'B':
    case 'D':
    case 'C':
    case 'E':
      Expect(type, Hears::kAll);
      group_open_ = true;
      group_dirty_ = group_dirty_ || type == 'E';
      flushed_ = false;
      break;
    case 'H':
      flushed_ = true;
      break;
    case 'd':
      copy_has_rows_ = true;
      break;
    case 'c':
    case 'f':
      copy_has_rows_ = true;
      copying_in_ = false;
      break;
    default:
      break;
  }
}

bool Conversation::Take(char type, std::string_view body) {
  switch (type) {
    case 'X':
      closed_ = true;
      host_.Close();
      return true;
    case 'Q':
      return TakeQuery(body);
    case 'P':
      return TakeParse(body);
    case 'S':
      steps_.push_back({.kind = Step::Kind::kSync});
      Begin();
      return true;
    default:
      if (!IsOwn(type, body)) {
        if (type == 'B') {  // it replaces a portal of ours
          BigEndianReader reader(body);
          DropPortal(reader.String());
        }
        return false;
      }
      if (type == 'C' && ClosesInDatabase(body)) {
        return false;
      }
      steps_.push_back({.kind = Step::Kind::kOwn, .type = type, .text = std::string(body)});
      Begin();
      return true;
  }
}

// Close of a prepared statement of ours that the database has, too: forget it here.
bool Conversation::ClosesInDatabase(std::string_view body) {
  BigEndianReader reader(body);
  const char kind = reader.Take<char>();
  const auto known = statements_.find(reader.String());
  if (kind != 'S' || known == statements_.end() || !known->second.in_database) {
    return false;
  }
  statements_.erase(known);
  return true;
}

bool Conversation::TakeQuery(std::string_view body) {
  const Result<std::string_view> sql = ReadQuery(body);
  if (!sql.ok()) {
    return false;  // the back end says so
  }
  const Result<std::string> text = Utf8Of(*sql);
  const std::optional<Route> route = text.ok() ? RouteOf(*text) : std::nullopt;
  known_route_.reset();
  if (!route.has_value()) {
    statements_.erase(statements_.begin(), statements_.upper_bound(""));  // the unnamed one
    DropPortal("");
    return false;
  }
  script_ = *text;
  in_script_ = true;
  if (route->error.ok()) {
    QueueParts(route->parts);
  } else {
    steps_.push_back({.kind = Step::Kind::kError, .error = route->error});
  }
  steps_.push_back({.kind = Step::Kind::kReady});
  Begin();
  return true;
}

// The statements of one Query are one transaction, unless they say otherwise themselves.
void Conversation::QueueParts(const std::vector<Part>& parts) {
  // Kept rows need a surrounding transaction.
  const auto keeps = [](const Part& part) {
    return part.kind == Part::Kind::kOurs && part.inside.has_value();
  };
  const bool several = parts.size() > 1 || keeps(parts.front());
  for (const Part& part : parts) {
    if (several && !part.transaction) {
      steps_.push_back({.kind = Step::Kind::kBegin});
    }
    if (part.kind == Part::Kind::kForget && !HasInDatabase(part.name)) {
      std::string done;
      AppendCommandComplete(done, "DEALLOCATE");
      steps_.push_back({.kind = Step::Kind::kForget, .text = part.name});
      steps_.push_back({.kind = Step::Kind::kSay, .text = std::move(done)});
      continue;
    }
    const Step::Kind kind = keeps(part)                         ? Step::Kind::kKeep
                            : part.kind == Part::Kind::kOurs    ? Step::Kind::kRun
                            : part.kind == Part::Kind::kSet     ? Step::Kind::kSet
                            : part.kind == Part::Kind::kPrepare ? Step::Kind::kPrepare
                            : part.kind == Part::Kind::kExecute ? Step::Kind::kExecute
                                                                : Step::Kind::kForward;
    steps_.push_back({.kind = kind,
                      .span = part.span,
                      .inside = part.inside.value_or(Span()),
                      .transaction = part.transaction});
    if (part.kind == Part::Kind::kForget) {
      steps_.push_back({.kind = Step::Kind::kForget, .text = part.name});
    }
  }
  if (several) {
    steps_.push_back({.kind = Step::Kind::kCommit});
  }
}

bool Conversation::TakeParse(std::string_view body) {
  const Result<ParseMessage> parse = ReadParse(body);
  if (!parse.ok()) {
    return false;
  }
  const Result<std::string> text = Utf8Of(parse->sql);
  const std::optional<Route> route = text.ok() ? RouteOf(*text) : std::nullopt;
  const auto is_only = [&route](Part::Kind kind) {
    return route.has_value() && route->error.ok() && route->parts.size() == 1 &&
           route->parts.front().kind == kind;
  };
  if (!route.has_value() || is_only(Part::Kind::kForget) ||
      (is_only(Part::Kind::kSet) && host_.CheckSetting(*text).ok())) {
    if (parse->name.empty()) {
      statements_.erase(statements_.begin(), statements_.upper_bound(""));
    }
    if (statements_.find(parse->name) == statements_.end()) {
      known_route_.reset();
      return false;
    }
  }
  steps_.push_back({.kind = Step::Kind::kOwn, .type = 'P', .text = std::string(body)});
  Begin();
  return true;
}

// The database has those of our prepared statements that PREPARE created; "": all.
bool Conversation::HasInDatabase(std::string_view name) const {
  const auto known = statements_.find(name);
  return name.empty() || known == statements_.end() || known->second.in_database;
}

bool Conversation::IsOwn(char type, std::string_view body) const {
  BigEndianReader reader(body);
  switch (type) {
    case 'B': {
      reader.String();
      const std::string_view statement = reader.String();
      return reader.ok() && statements_.find(statement) != statements_.end();
    }
    case 'E':
      return portals_.find(reader.String()) != portals_.end();
    default: {
      const char kind = reader.Take<char>();
      const std::string_view name = reader.String();
      return reader.ok() && (kind == 'S' ? statements_.find(name) != statements_.end()
                                         : portals_.find(name) != portals_.end());
    }
  }
}

void Conversation::ProtocolError(std::string_view message) {
  std::string bytes;
  AppendError(bytes, InvalidArgument(std::string(message)).SqlState("08P01"), {}, 0, "FATAL");
  Reply(bytes);
  closed_ = true;
  host_.Close();
}

}  // namespace sluice::server::pgwire
