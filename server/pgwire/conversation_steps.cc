#include <algorithm>
#include <utility>

#include "server/pgwire/conversation.h"
#include "server/pgwire/prepared_text.h"
#include "server/pgwire/sql_words_internal.h"

// What is done about statements of ours, one step after another.
namespace sluice::server::pgwire {
namespace {

// Fails wherever it runs inside a transaction block, and with it the block.
constexpr std::string_view kFailBlock = "ROLLBACK TO SAVEPOINT sluice_statement_failed";
// A prepared statement that nobody has: binding it fails what has come since the last Sync.
constexpr std::string_view kNoStatement = "sluice statement failed";

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
      KeepStep(step);
      break;
    case Step::Kind::kPrepare:
      PrepareOwn(step);
      break;
    case Step::Kind::kExecute:
      ExecutePrepared(step);
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

void Conversation::PrepareOwn(const Step& step) {
  const std::string_view script = script_;
  place_ = step.inside.begin;
  const std::optional<PrepareText> prepare =
      ReadPrepareText(TextOf(script, {step.span.begin, step.inside.begin}));
  if (!prepare.has_value()) {
    return Fail(SyntaxError("PREPARE needs a name: PREPARE name [(type, ...)] AS a statement"));
  }
  if (statements_.find(prepare->name) != statements_.end()) {
    return Fail(NameIsTaken(prepare->name));
  }
  Prepared prepared;
  prepared.text = TextOf(script, step.inside);
  prepared.type_names = prepare->types;
  const Status readable = CheckText(prepared.text, {});
  if (!readable.ok()) {
    return Fail(readable);
  }
  prepared.types.resize(std::max(prepare->types.size(), CountParameters(prepared.text)));
  statements_.insert_or_assign(prepare->name, std::move(prepared));
  std::string done;
  AppendCommandComplete(done, "PREPARE");
  Reply(done);
}

void Conversation::ExecutePrepared(const Step& step) {
  place_ = step.span.begin;
  const std::optional<ExecuteText> execute = ReadExecuteText(TextOf(script_, step.span));
  const auto prepared = execute.has_value() ? statements_.find(execute->name) : statements_.end();
  if (prepared == statements_.end()) {  // the script has forgotten it
    return Fail(NoPrepared(execute.has_value() ? execute->name : ""));
  }
  Result<BoundText> bound =
      BindArguments(prepared->second.text, prepared->second.type_names, *execute);
  if (!bound.ok()) {
    return Fail(bound.status());
  }
  OwnStatement statement;
  statement.text = bound->text;
  statement.describe_rows = true;
  bound_ = *std::move(bound);
  BeginOwn(statement);
}

void Conversation::KeepStep(const Step& step) {
  place_ = step.inside.begin;
  OwnStatement statement;
  statement.text = TextOf(script_, step.inside);
  statement.describe_rows = true;
  Keep(statement, step.span, step.inside);
}

// `whole`, `inside`: of script_.
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
  host_.Run(statement, status_ == 'T');
}

// For the back end the session is idle while a statement of ours runs. It counts the time of that
// (idle_in_transaction_session_timeout) from ReadyForQuery to the next message, whatever that is.
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
