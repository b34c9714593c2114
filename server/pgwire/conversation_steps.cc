#include <algorithm>
#include <utility>

#include "parser/parser.h"
#include "server/pgwire/conversation.h"

// What is done about statements of ours, one step after another.
namespace sluice::server::pgwire {
namespace {

// Fails wherever it runs inside a transaction block, and with it the block.
constexpr std::string_view kFailBlock = "ROLLBACK TO SAVEPOINT sluice_statement_failed";
// A prepared statement that nobody has: binding it fails what has come since the last Sync.
constexpr std::string_view kNoStatement = "sluice statement failed";

Status Aborted() {
  return Status(Code::kFailedPrecondition,
                "current transaction is aborted, commands ignored until end of transaction block")
      .SqlState("25P02");
}

std::string_view TextOf(std::string_view script, const Span& span) {
  return script.substr(static_cast<size_t>(span.begin), static_cast<size_t>(span.end - span.begin));
}

// So many blanks as the text has characters: what follows is then at its own place.
std::string Blanks(std::string_view text) {
  size_t characters = 0;
  for (const char byte : text) {
    characters += (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U ? 1 : 0;
  }
  return std::string(characters, ' ');
}

}  // namespace

void Conversation::Begin() {
  // What has been sent without a Sync may not have been answered yet.
  if (group_open_ && !flushed_ && !expected_.empty()) {
    std::string flush;
    AppendMessage(flush, 'H', {});
    host_.ToServer(flush);
    flushed_ = true;
  }
  Advance();
}

void Conversation::Advance() {
  while (!steps_.empty() && !running_ && expected_.empty() && !closed_) {
    const Step step = std::move(steps_.front());
    steps_.pop_front();
    Perform(step);
  }
}

void Conversation::Perform(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kOwn:
      PerformOwn(step);
      break;
    case Step::Kind::kForward:
      Forward(step.span);
      wrapped_ = wrapped_ && !step.transaction;  // from here on it is the script's own
      break;
    case Step::Kind::kRun: {
      OwnStatement statement;
      statement.text = TextOf(script_, step.span);
      statement.describe_rows = true;
      place_ = step.span.begin;
      BeginOwn(statement);
      break;
    }
    case Step::Kind::kKeep:
      Keep(step);
      break;
    case Step::Kind::kGive:
      Expect('Q', Hears::kAllButReady);
      host_.ToServer(step.text);
      break;
    case Step::Kind::kAsk:
      AskOurs(step.text, Hears::kErrors);
      break;
    case Step::Kind::kSet: {
      place_ = step.span.begin;
      const Status allowed = host_.CheckSetting(TextOf(script_, step.span));
      if (allowed.ok()) {
        Forward(step.span);
      } else {
        Fail(allowed);
      }
      break;
    }
    case Step::Kind::kBegin:
      if (status_ == 'I') {
        AskOurs("BEGIN");
        wrapped_ = true;
      }
      break;
    case Step::Kind::kCommit:
      if (wrapped_) {
        AskOurs("COMMIT", Hears::kErrors);
        wrapped_ = false;
      }
      break;
    case Step::Kind::kRollback:
      if (wrapped_) {
        AskOurs("ROLLBACK");
        wrapped_ = false;
      }
      break;
    case Step::Kind::kSync:
      Sync();
      break;
    case Step::Kind::kSay:
      Reply(step.text);
      break;
    case Step::Kind::kError:
      place_ = 0;
      Fail(step.error);
      break;
    case Step::Kind::kReady: {
      in_script_ = false;
      std::string ready;
      AppendReady(ready, status_);
      Reply(ready);
      break;
    }
  }
}

void Conversation::Keep(const Step& step) {
  const std::string_view script = script_;
  const Span before = {step.span.begin, step.inside.begin};
  const Span after = {step.inside.end, step.span.end};
  place_ = step.inside.begin;
  if (wrapped_ && DeclaresForTransaction(TextOf(script, before))) {
    return Fail(
        Status(Code::kFailedPrecondition, "DECLARE CURSOR can only be used in transaction blocks")
            .SqlState("25P01"));
  }
  OwnStatement statement;
  statement.text = TextOf(script_, step.inside);
  statement.describe_rows = true;
  keeping_ = Keeping{KeptRows(++kept_), std::string(TextOf(script, before)),
                     std::string(TextOf(script, after))};
  BeginOwn(statement);
  if (!running_) {
    keeping_.reset();  // the transaction has failed before
  }
}

// The database makes a table of them, and reads that in the place of our statement.
void Conversation::GiveKept(const Keeping& keeping) {
  if (!keeping.rows.has_columns()) {
    return Fail(SyntaxError("the statement answers without rows"));
  }
  std::string query;
  AppendQuery(query, keeping.before + keeping.rows.Select() + keeping.after);
  std::vector<std::string> statements = keeping.rows.Statements();
  steps_.push_front({.kind = Step::Kind::kGive, .text = std::move(query)});
  for (auto statement = statements.rbegin(); statement != statements.rend(); ++statement) {
    steps_.push_front({.kind = Step::Kind::kAsk, .text = std::move(*statement)});
  }
}

void Conversation::AskOurs(std::string_view sql, Hears hears) {
  std::string query;
  AppendQuery(query, sql);
  Expect('Q', hears);
  host_.ToServer(query);
}

// Places in the database's errors count from the script's beginning.
void Conversation::Forward(const Span& span) {
  std::string query;
  AppendQuery(query, Blanks(std::string_view(script_).substr(0, static_cast<size_t>(span.begin))) +
                         std::string(TextOf(script_, span)));
  Expect('Q', Hears::kAllButReady);
  host_.ToServer(query);
}

// A pipeline has come to its end, and with it the transaction that we began in it.
void Conversation::Sync() {
  std::string sync;
  AppendMessage(sync, 'S', {});
  if (!group_failed_) {
    AskOurs("COMMIT", Hears::kErrors);
    wrapped_ = false;
    Account('S');
    host_.ToServer(sync);
    return;
  }
  Account('S');
  expected_.back().hears = Hears::kNothing;
  host_.ToServer(sync);
  steps_.push_back({.kind = Step::Kind::kRollback});
  steps_.push_back({.kind = Step::Kind::kReady});
}

void Conversation::PerformOwn(const Step& step) {
  if (group_failed_) {
    return;  // skipped, as what follows until Sync
  }
  place_ = 0;
  switch (step.type) {
    case 'P':
      ParseOwn(step.text);
      break;
    case 'B':
      BindOwn(step.text);
      break;
    case 'D':
      DescribeOwn(step.text);
      break;
    case 'E':
      ExecuteOwn(step.text);
      break;
    default:
      CloseOwn(step.text);
  }
}

void Conversation::ParseOwn(std::string_view body) {
  const Result<ParseMessage> message = ReadParse(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  script_ = message->sql;
  if (!message->name.empty() && statements_.find(message->name) != statements_.end()) {
    return Fail(
        AlreadyExists("prepared statement \"" + std::string(message->name) + "\" already exists")
            .SqlState("42P05"));
  }
  const std::optional<Route> route = RouteScript(message->sql);
  if (route.has_value() && !route->error.ok()) {
    return Fail(route->error);
  }
  if (route.has_value() && route->parts.size() == 1 &&
      route->parts.front().kind == Part::Kind::kSet) {
    return Fail(host_.CheckSetting(message->sql));
  }
  if (!route.has_value() || route->parts.size() != 1) {
    return Fail(SyntaxError("cannot insert multiple commands into a prepared statement"));
  }
  if (const std::optional<Span>& inside = route->parts.front().inside) {
    return Fail(Unimplemented("a cursor over a statement of Sluice is declared by a simple query")
                    .At(*inside)
                    .Hint("fetch the statement's rows by a portal's row limit (setFetchSize)"));
  }
  const Result<BoundText> unbound = BindText(message->sql, message->types, {}, nullptr);
  const auto parsed = unbound.ok() ? parser::Parse(unbound->text) : parser::Parse(message->sql);
  if (!parsed.ok()) {
    return Fail(unbound.ok() ? unbound->Moved(parsed.status()) : parsed.status());
  }
  Prepared prepared;
  prepared.text = message->sql;
  prepared.types = message->types;
  prepared.types.resize(std::max(prepared.types.size(), CountParameters(message->sql)));
  statements_.insert_or_assign(std::string(message->name), std::move(prepared));
  std::string reply;
  AppendMessage(reply, '1', {});
  Reply(reply);
}

void Conversation::BindOwn(std::string_view body) {
  const Result<BindMessage> message = ReadBind(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const auto prepared = statements_.find(message->statement);
  if (prepared == statements_.end()) {
    return Fail(
        NotFound("prepared statement \"" + std::string(message->statement) + "\" does not exist")
            .SqlState("26000"));
  }
  if (!message->portal.empty() && portals_.find(message->portal) != portals_.end()) {
    return Fail(AlreadyExists("portal \"" + std::string(message->portal) + "\" already exists")
                    .SqlState("42P03"));
  }
  DropPortal(message->portal);
  script_ = prepared->second.text;
  std::vector<std::optional<std::string>> values;
  for (const auto& value : message->values) {
    values.emplace_back(value.has_value() ? std::optional<std::string>(*value) : std::nullopt);
  }
  Result<BoundText> bound =
      BindText(prepared->second.text, prepared->second.types, message->formats, &values);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  Portal portal;
  portal.text = prepared->second.text;
  portal.statement.text = bound->text;
  portal.statement.result_formats = message->result_formats;
  portal.bound = *std::move(bound);
  portals_.insert_or_assign(std::string(message->portal), std::move(portal));
  std::string reply;
  AppendMessage(reply, '2', {});
  Reply(reply);
}

void Conversation::DescribeOwn(std::string_view body) {
  const Result<TargetMessage> message = ReadTarget(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  describing_ = DescribedTarget{message->kind, std::string(message->name)};
  if (message->kind == 'P') {
    const auto portal = portals_.find(message->name);
    return portal == portals_.end()
               ? Fail(NotFound("portal \"" + describing_->name + "\" does not exist")
                          .SqlState("34000"))
               : DescribeBound(portal->second.statement, portal->second.text, portal->second.bound);
  }
  const auto prepared = statements_.find(message->name);
  if (prepared == statements_.end()) {
    return Fail(NotFound("prepared statement \"" + describing_->name + "\" does not exist")
                    .SqlState("26000"));
  }
  Result<BoundText> bound = BindText(prepared->second.text, prepared->second.types, {}, nullptr);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  OwnStatement statement;
  statement.text = bound->text;
  DescribeBound(statement, prepared->second.text, *std::move(bound));
}

void Conversation::DescribeBound(const OwnStatement& statement, std::string text, BoundText bound) {
  script_ = std::move(text);
  if (status_ == 'E') {
    return Fail(Aborted());
  }
  bound_ = std::move(bound);
  running_ = true;
  host_.Describe(statement, status_ == 'T');
}

void Conversation::Described(const Result<std::vector<WireColumn>>& columns) {
  running_ = false;
  TakeBack();
  const std::optional<DescribedTarget> target = std::exchange(describing_, std::nullopt);
  const BoundText bound = std::exchange(bound_, {});
  if (!columns.ok()) {
    Fail(bound.Moved(columns.status()));
  } else {
    std::string reply;
    if (target->kind == 'S') {
      const auto prepared = statements_.find(target->name);
      std::vector<uint32_t> types;
      if (prepared != statements_.end()) {
        types = prepared->second.types;
      }
      std::replace(types.begin(), types.end(), uint32_t{kUnspecifiedOid}, uint32_t{kTextOid});
      AppendParameterDescription(reply, types);
    }
    if (columns->empty()) {
      AppendMessage(reply, 'n', {});
    } else {
      AppendRowDescription(reply, *columns);
    }
    Reply(reply);
  }
  Advance();
  ProcessHeld();
}

void Conversation::ExecuteOwn(std::string_view body) {
  const Result<ExecuteMessage> message = ReadExecute(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  const auto found = portals_.find(message->portal);
  if (found == portals_.end()) {
    return Fail(NotFound("portal \"" + std::string(message->portal) + "\" does not exist")
                    .SqlState("34000"));
  }
  Portal& portal = found->second;
  if (portal.done) {
    std::string reply;
    AppendCommandComplete(reply, "SELECT 0");
    return Reply(reply);
  }
  script_ = portal.text;
  running_portal_ = found->first;
  if (portal.suspended) {
    portal.suspended = false;
    running_ = true;
    return host_.Resume(message->max_rows);
  }
  if (group_dirty_ && status_ == 'I' && !wrapped_) {
    // What the pipeline has done so far is seen by the statement, and is one transaction with it.
    AskOurs("BEGIN");
    wrapped_ = true;
    steps_.push_front({.kind = Step::Kind::kOwn, .type = 'E', .text = std::string(body)});
    return;
  }
  portal.statement.max_rows = message->max_rows;
  bound_ = portal.bound;
  BeginOwn(portal.statement);
}

void Conversation::CloseOwn(std::string_view body) {
  const Result<TargetMessage> message = ReadTarget(body);
  if (!message.ok()) {
    return Fail(message.status());
  }
  if (message->kind == 'S') {
    statements_.erase(std::string(message->name));
  } else {
    DropPortal(message->name);
  }
  std::string reply;
  AppendMessage(reply, '3', {});
  Reply(reply);
}

void Conversation::DropPortal(std::string_view name) {
  const auto found = portals_.find(name);
  if (found == portals_.end()) {
    return;
  }
  if (found->second.suspended) {
    host_.GiveUp();
  }
  portals_.erase(found);
}

void Conversation::DropPortals() {
  while (!portals_.empty()) {
    DropPortal(std::string(portals_.begin()->first));
  }
}

void Conversation::BeginOwn(const OwnStatement& statement) {
  if (status_ == 'E') {
    return Fail(Aborted());
  }
  for (auto portal = portals_.begin(); portal != portals_.end();) {  // one at a time
    portal =
        portal->second.suspended ? (host_.GiveUp(), portals_.erase(portal)) : std::next(portal);
  }
  running_ = true;
  host_.Run(statement, status_ == 'T');
}

void Conversation::Says(std::string_view bytes) {
  std::string heard;
  if (keeping_.has_value()) {
    Result<std::string> notices = keeping_->rows.Take(bytes);
    if (!notices.ok()) {
      return GiveUpKeeping(notices.status());
    }
    heard = *std::move(notices);
    bytes = heard;
  }
  if (server_left_ > 0 || !server_held_.empty()) {
    said_ += bytes;
    return;
  }
  host_.ToClient(bytes);
}

// Its rows are more than are kept.
void Conversation::GiveUpKeeping(const Status& error) {
  keeping_.reset();
  host_.GiveUp();
  running_ = false;
  TakeBack();
  Fail(error);
  Advance();
  ProcessHeld();
}

void Conversation::Reply(std::string_view bytes) {
  Says(bytes);
}

void Conversation::Suspended() {
  running_ = false;
  TakeBack();
  const auto portal = portals_.find(running_portal_);
  if (portal != portals_.end()) {
    portal->second.suspended = true;
  }
  std::string suspended;
  AppendMessage(suspended, 's', {});
  Reply(suspended);
  Advance();
  ProcessHeld();
}

void Conversation::Ended(const Status& status) {
  const auto portal = in_script_ ? portals_.end() : portals_.find(running_portal_);
  if (portal != portals_.end()) {
    portal->second.done = true;
    portal->second.suspended = false;
  }
  if (!std::exchange(running_, false)) {
    return;  // it was suspended: nobody waits for its answer
  }
  TakeBack();
  const BoundText bound = std::exchange(bound_, {});
  const std::optional<Keeping> keeping = std::exchange(keeping_, std::nullopt);
  if (!status.ok()) {
    Fail(bound.Moved(status));
  } else if (keeping.has_value()) {
    GiveKept(*keeping);
  }
  Advance();
  ProcessHeld();
}

// An error of ours has the effect of one of the database's.
void Conversation::Fail(const Status& error) {
  std::string bytes;
  AppendError(bytes, error, script_, place_);
  Reply(bytes);
  if (in_script_) {
    AbortScript();
    return;
  }
  group_failed_ = true;
  if (group_dirty_ || status_ == 'T') {
    std::string body;
    body += '\0';
    body += kNoStatement;
    body.append(1 + 3 * sizeof(uint16_t), '\0');
    std::string bind;
    AppendMessage(bind, 'B', body);
    Expect('B', Hears::kNothing);
    host_.ToServer(bind);
    std::string flush;
    AppendMessage(flush, 'H', {});
    host_.ToServer(flush);
  }
}

// What is left of a script does not run.
void Conversation::AbortScript() {
  steps_.clear();
  if (wrapped_) {
    steps_.push_back({.kind = Step::Kind::kRollback});
  } else if (status_ == 'T') {
    AskOurs(kFailBlock);
  }
  steps_.push_back({.kind = Step::Kind::kReady});
}

}  // namespace sluice::server::pgwire
