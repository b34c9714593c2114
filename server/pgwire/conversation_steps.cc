#include <algorithm>
#include <utility>

#include "server/pgwire/conversation.h"
#include "server/pgwire/sql/sql_words_internal.h"

// Performs the steps for statements of ours, one after another.
namespace sluice::server::pgwire {
namespace {

// Fails in any transaction block, and thereby fails the block.
constexpr std::string_view kFailBlock = "ROLLBACK TO SAVEPOINT sluice_statement_failed";
// A prepared statement that does not exist: binding it fails everything since the last Sync.
constexpr std::string_view kNoStatement = "sluice statement failed";

}  // namespace

void Conversation::Begin() {
  // What was sent without a Sync may be unanswered still.
  if (group_open_ && !flushed_ && !expected_.empty()) {
    std::string flush;
    AppendMessage(flush, 'H', {});
    host_.ToServer(flush);
    flushed_ = true;
  }
  Advance();
}

void Conversation::Advance() {
  while (!running_ && expected_.empty() && !closed_) {
    const bool more = !steps_.empty();
    if (SwitchEncoding(more && Borrows(steps_.front()))) {
      continue;
    }
    if (!more) {
      break;
    }
    const Step step = std::move(steps_.front());
    steps_.pop_front();
    Perform(step);
  }
}

bool Conversation::Borrows(const Step& step) {
  return step.kind == Step::Kind::kRun || step.kind == Step::Kind::kKeep ||
         (step.kind == Step::Kind::kExecute && step.asked) ||
         (step.kind == Step::Kind::kOwn && (step.type == 'E' || step.type == 'D'));
}

// A borrower uses UTF-8 with the back end; the client receives its output in its own encoding.
// True: another encoding was requested. The request may be cancelled together with what ran before.
bool Conversation::SwitchEncoding(bool borrows) {
  constexpr int kMostRequests = 5;
  const bool wants_utf8 = encoding_.has_value() && borrows;
  if ((!wants_utf8 && switched_ == 0) || status_ == 'E' || switched_ > kMostRequests) {
    switched_ = wants_utf8 || switched_ == 0 ? switched_ : 0;
    return false;
  }
  const std::string wanted = wants_utf8 ? "UTF8" : parameters_["client_encoding"];
  if (backend_encoding_ == wanted) {
    switched_ = wants_utf8 ? std::max(switched_, 1) : 0;
    return false;
  }
  ++switched_;
  AskOurs("SET client_encoding TO '" + wanted + "'");
  return true;
}

void Conversation::Perform(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kOwn:
      PerformOwn(step);
      break;
    case Step::Kind::kForward:
      Forward(step.span);
      wrapped_ = wrapped_ && !step.transaction;  // from here on the transaction is the script's own
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
      KeepStep(step);
      break;
    case Step::Kind::kPrepare:
      PrepareOwn(step);
      break;
    case Step::Kind::kPrepared:
      RegisterPrepared(step);
      break;
    case Step::Kind::kInDatabase:
      statements_[step.text].in_database = true;
      break;
    case Step::Kind::kForget:
      ForgetPrepared(step.text);
      break;
    case Step::Kind::kExecute:
      ExecutePrepared(step);
      break;
    case Step::Kind::kAskRow:
      answer_.reset();
      AskOurs(step.text, Hears::kRow);
      break;
    case Step::Kind::kGive:
      AskOurs(step.text, Hears::kAllButReady);
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

void Conversation::KeepStep(const Step& step) {
  place_ = step.inside.begin;
  OwnStatement statement;
  statement.text = TextOf(script_, step.inside);
  statement.describe_rows = true;
  Keep(statement, step.span, step.inside);
}

// `whole`, `inside`: places in script_.
void Conversation::Keep(const OwnStatement& statement, const Span& whole, const Span& inside) {
  const std::string_view script = script_;
  const std::string_view before = TextOf(script, {whole.begin, inside.begin});
  if ((wrapped_ || status_ == 'I') && DeclaresForTransaction(before)) {
    return Fail(
        Status(Code::kFailedPrecondition, "DECLARE CURSOR can only be used in transaction blocks")
            .SqlState("25P01"));
  }
  keeping_ = Keeping{KeptRows(++kept_, dialect_), std::string(before),
                     std::string(TextOf(script, {inside.end, whole.end}))};
  BeginOwn(statement);
  if (!running_) {
    keeping_.reset();  // the transaction had failed before
  }
}

// The database creates a table of the rows, and reads that instead of running our statement.
void Conversation::GiveKept(const Keeping& keeping) {
  if (!keeping.rows.has_columns()) {
    return Fail(SyntaxError("the statement answers without rows"));
  }
  std::vector<std::string> statements = keeping.rows.Statements();
  steps_.push_front(
      {.kind = Step::Kind::kGive, .text = keeping.before + keeping.rows.Select() + keeping.after});
  for (auto statement = statements.rbegin(); statement != statements.rend(); ++statement) {
    steps_.push_front({.kind = Step::Kind::kAsk, .text = std::move(*statement)});
  }
}

void Conversation::AskOurs(std::string_view sql, Hears hears) {
  const Result<std::string> text = ForServer(sql);
  if (!text.ok()) {
    return Fail(text.status());
  }
  std::string query;
  AppendQuery(query, *text);
  Expect('Q', hears);
  host_.ToServer(query);
}

// Places in the database's errors are counted from the beginning of the script.
void Conversation::Forward(const Span& span) {
  AskOurs(Blanks(std::string_view(script_).substr(0, static_cast<size_t>(span.begin))) +
              std::string(TextOf(script_, span)),
          Hears::kAllButReady);
}

// At the end of a pipeline, ends the transaction that we began in it.
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

Status Conversation::AbortedBlock() {
  return Status(Code::kFailedPrecondition,
                "current transaction is aborted, commands ignored until end of transaction block")
      .SqlState("25P02");
}

void Conversation::BeginOwn(const OwnStatement& statement) {
  if (status_ == 'E') {
    return Fail(AbortedBlock());
  }
  for (auto portal = portals_.begin(); portal != portals_.end();) {  // one at a time
    portal =
        portal->second.suspended ? (host_.GiveUp(), portals_.erase(portal)) : std::next(portal);
  }
  running_ = true;
  KeepAwake();
  OwnStatement encoded = statement;
  if (!keeping_.has_value()) {
    encoded.encoding = encoding_;
  }
  host_.Run(encoded, status_ == 'T');
}

// To the back end the session is idle while a statement of ours runs. Any message resets its
// idle_in_transaction_session_timeout, which counts from ReadyForQuery.
void Conversation::KeepAwake() {
  std::string flush;
  AppendMessage(flush, 'H', {});
  host_.ToServer(flush);
}

void Conversation::Says(std::string_view bytes) {
  std::string heard;
  if (keeping_.has_value()) {
    Result<std::string> notices = keeping_->rows.Take(bytes);
    if (!notices.ok()) {
      return GiveUpKeeping(notices.status());
    }
    const Status room = host_.MayKeep(kept_bytes());
    if (!room.ok()) {
      return GiveUpKeeping(room);
    }
    heard = *std::move(notices);
    bytes = heard;
  }
  if (encoding_.has_value()) {
    heard = encoding_->Encoded(bytes);
    bytes = heard;
  }
  if (server_left_ > 0 || !server_held_.empty()) {
    said_ += bytes;
    return;
  }
  host_.ToClient(bytes);
}

size_t Conversation::kept_bytes() const {
  size_t bytes = keeping_.has_value() ? keeping_->rows.bytes() : 0;
  for (const Step& step : steps_) {
    bytes += step.kind == Step::Kind::kAsk ? step.text.size() : 0;
  }
  return bytes;
}

// There are more rows than are kept.
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
  } else {  // the back end has ended its transaction meanwhile: nobody can ask for more
    host_.GiveUp();
  }
  std::string suspended;
  AppendMessage(suspended, 's', {});
  Reply(suspended);
  Advance();
  ProcessHeld();
}

void Conversation::Ended(const Status& status) {
  for (auto& [name, portal] : portals_) {
    if (std::exchange(portal.suspended, false)) {  // no answer is due before its next Execute
      portal.done = true;
      portal.failure = portal.bound.Moved(status);
      return;
    }
  }
  running_ = false;
  const auto portal = in_script_ ? portals_.end() : portals_.find(running_portal_);
  if (portal != portals_.end()) {
    portal->second.done = true;
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

// An error of ours has the same effect as one of the database's.
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

// The rest of a script does not run.
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
