#include "server/pgwire/embedded/embedded_server.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/sql/sql_text.h"
#include "catalog/sql/token_limit.h"
#include "server/pgwire/sql/binary_forms_internal.h"
#include "server/pgwire/sql/sql_words_internal.h"

// The main loop: messages, transactions, scripts.
namespace sluice::server::pgwire {
namespace {

// Bytes of consumed input after which its memory is given back.
constexpr size_t kWorkedOn = size_t{64} << 10;

}  // namespace

EmbeddedServer::EmbeddedServer(std::unique_ptr<catalog::EmbeddedSession> session,
                               SessionSettings settings, std::unique_ptr<Observer> observer,
                               std::shared_ptr<catalog::MemoryAccount> memory)
    : session_(std::move(session)),
      settings_(std::move(settings)),
      observer_(std::move(observer)),
      memory_(std::move(memory)) {}

Status EmbeddedServer::Begins(std::string_view sql) {
  if (observer_ != nullptr && !observed_) {
    RETURN_IF_ERROR(observer_->Begins(sql));
    observed_ = true;
  }
  return std::exchange(cancel_next_, false) ? Cancelled("cancelled") : OkStatus();
}

void EmbeddedServer::Ends(const Status& outcome, std::string_view tag, const Running* running) {
  if (std::exchange(observed_, false)) {
    observer_->Ends(outcome, tag, running == nullptr || running->silent ? 0 : running->rows,
                    running == nullptr ? std::vector<WireColumn>() : running->columns);
  }
}

// Whether another connection holds a lock that is worth waiting for.
bool EmbeddedServer::Stopped(const Status& status) {
  return !status.ok() && status.sqlstate() == "55P03" && !gives_up_.has_value();
}

EmbeddedServer::State EmbeddedServer::Work(std::string* out) {
  out_ = out;
  if (out_->size() < kEnoughSaid) {
    copies_.Clear();
  }
  const catalog::ChargesMemory charges(memory_.get());
  const State after = WorkOn();
  cancel_next_ = false;
  return after;
}

std::optional<std::chrono::milliseconds> EmbeddedServer::MayKeepLock() const {
  return session_->transaction() == catalog::EmbeddedSession::Transaction::kWrite
             ? std::optional(settings_.MostSilence())
             : std::nullopt;
}

EmbeddedServer::State EmbeddedServer::WorkOn() {
  if (ends_silent_) {
    RollBackBlock();
    AppendError(*out_,
                Status(Code::kAborted, "terminating connection due to idle-in-transaction timeout")
                    .SqlState("25P03")
                    .Hint("others waited for the write lock of this transaction"),
                {}, 0, "FATAL");
    ended_ = true;
  }
  while (out_->size() < kEnoughSaid && !ended_) {
    Status status;
    size_t consumed = 0;
    const bool cancels = cancel_next_;
    if (running_.has_value()) {
      status = std::exchange(cancel_next_, false) ? Cancelled("cancelled") : RunOn();
    } else if (in_script_ && !copying_.has_value()) {
      status = NextOfScript();
    } else {
      const auto message = NextMessage();
      if (!message.has_value()) {
        return ended_ ? State::kEnded : State::kIdle;
      }
      consumed = kHeaderBytes + message->second.size();
      status = Handle(message->first, message->second);
    }
    if (Stopped(status)) {
      return State::kLocked;
    }
    Consume(consumed);
    if (!status.ok()) {
      const bool locked = status.sqlstate() == "55P03" && gives_up_.has_value();
      Fail(locked ? *gives_up_ : status);
    }
    gives_up_.reset();
    if (cancels && !cancel_next_ && !ended_) {
      return State::kMore;
    }
  }
  return ended_ ? State::kEnded : State::kMore;
}

std::optional<std::pair<char, std::string_view>> EmbeddedServer::NextMessage() {
  const std::string_view rest = std::string_view(held_).substr(at_);
  if (rest.size() < kHeaderBytes) {
    return std::nullopt;
  }
  const size_t length = LoadBigEndian<uint32_t>(rest.substr(1));
  if (length < kLengthBytes || length > kMaxMessageBytes) {
    AppendError(*out_, InvalidArgument("invalid message length").SqlState("08P01"), {}, 0, "FATAL");
    ended_ = true;
    return std::nullopt;
  }
  if (rest.size() < 1 + length) {
    return std::nullopt;
  }
  return std::pair(rest[0], rest.substr(kHeaderBytes, length - kLengthBytes));
}

void EmbeddedServer::Consume(size_t bytes) {
  at_ += bytes;
  if (at_ == held_.size()) {
    held_.clear();
    at_ = 0;
  } else if (at_ > kWorkedOn) {
    held_.erase(0, at_);
    at_ = 0;
  }
}

bool EmbeddedServer::NextIsSync() const {
  // What follows the message that is worked on.
  const std::string_view rest = std::string_view(held_).substr(at_);
  const size_t next = 1 + LoadBigEndian<uint32_t>(rest.substr(1));
  return next < rest.size() && rest[next] == 'S';
}

Status EmbeddedServer::Handle(char type, std::string_view body) {
  if (type == 'X') {
    ended_ = true;
    return OkStatus();
  }
  if (copying_.has_value()) {
    return HandleCopy(type, body);
  }
  if (skips_ && type != 'S') {
    return OkStatus();
  }
  switch (type) {
    case 'Q':
      return BeginScript(body);
    case 'P':
      return Parse(body);
    case 'B':
      return Bind(body);
    case 'D':
      return Describe(body);
    case 'E':
      return Execute(body);
    case 'C':
      return Close(body);
    case 'S':
      return Sync();
    case 'F':
      in_script_ = true;  // its error is followed by ReadyForQuery
      return Unimplemented("function calls of the protocol are not there over SQLite");
    case 'H':
    case 'd':
    case 'c':
    case 'f':  // of a COPY that failed
      return OkStatus();
    default:
      AppendError(*out_,
                  InvalidArgument(fmt::format("invalid frontend message type {}",
                                              static_cast<int>(static_cast<unsigned char>(type))))
                      .SqlState("08P01"),
                  {}, 0, "FATAL");
      ended_ = true;
      return OkStatus();
  }
}

char EmbeddedServer::StatusByte() const {
  return block_ == Block::kExplicit ? 'T' : block_ == Block::kFailed ? 'E' : 'I';
}

void EmbeddedServer::Ready() {
  for (const auto& [name, value] : settings_.TakeChanged()) {
    AppendParameterStatus(*out_, name, value);
  }
  AppendReady(*out_, StatusByte());
}

void EmbeddedServer::Fail(const Status& status) {
  Status shown = status;
  if (status.sqlstate() == "57014" && !copying_.has_value()) {
    shown = Cancelled("canceling statement due to user request");
  }
  AppendError(*out_, shown, script_, place_);
  if (const std::string parsed = std::exchange(parsing_, {});
      !parsed.empty() && Begins(parsed).ok()) {
    Ends(shown, "");
  }
  Ends(shown, "", running_.has_value() ? &*running_ : nullptr);
  running_.reset();
  copying_.reset();
  if (block_ == Block::kImplicit) {
    RollBackBlock();
  } else if (block_ == Block::kExplicit) {
    block_ = Block::kFailed;
  }
  if (std::exchange(in_script_, false)) {
    Ready();
  } else {
    skips_ = true;
  }
}

// Transactions.

Status EmbeddedServer::BeginBlock(Block kind) {
  RETURN_IF_ERROR(session_->Run("BEGIN"));
  block_ = kind;
  read_only_ = settings_.Get("default_transaction_read_only") == "on";
  settings_.Begin();
  return OkStatus();
}

Status EmbeddedServer::CommitBlock() {
  EndPortals();
  if (session_->transaction() != catalog::EmbeddedSession::Transaction::kNone) {
    Status committed = session_->Run("COMMIT");
    if (Stopped(committed)) {
      return committed;
    }
    if (!committed.ok()) {
      RollBackBlock();
      return committed;
    }
  }
  block_ = Block::kNone;
  settings_.End(true);
  return OkStatus();
}

void EmbeddedServer::RollBackBlock() {
  EndPortals();
  // SQLite may already have rolled back (a full disk).
  if (session_->transaction() != catalog::EmbeddedSession::Transaction::kNone) {
    const Status rolled_back = session_->Run("ROLLBACK");
    if (!rolled_back.ok()) {
      AppendError(*out_, rolled_back, {}, 0, "FATAL");
      ended_ = true;
    }
  }
  block_ = Block::kNone;
  settings_.End(false);
}

// Portals and cursors end with their transaction.
void EmbeddedServer::EndPortals() {
  portals_.clear();
  for (auto cursor = cursors_.begin(); cursor != cursors_.end();) {
    cursor = cursor->second.hold ? std::next(cursor) : cursors_.erase(cursor);
  }
}

Status EmbeddedServer::CheckHeld() {
  if (memory_ == nullptr || catalog::CheckHeldMemory(*memory_, copies_.bytes()).ok()) {
    return OkStatus();
  }
  session_->ReleaseCaches();
  return catalog::CheckHeldMemory(*memory_, copies_.bytes());
}

// A portal or cursor that holds too much: a failed transaction, or WITH HOLD, would keep it.
void EmbeddedServer::Forget(const std::shared_ptr<Source>& source) {
  std::erase_if(portals_, [&](const auto& named) { return named.second.source == source; });
  std::erase_if(cursors_, [&](const auto& named) { return named.second.source == source; });
}

// `statement`: nullptr for one of SQLite's own.
Status EmbeddedServer::CheckBlock(const SessionStatement* statement) const {
  using Kind = SessionStatement::Kind;
  const bool leaves = statement != nullptr &&
                      (statement->kind == Kind::kCommit || statement->kind == Kind::kRollback ||
                       statement->kind == Kind::kRollbackTo);
  if (block_ != Block::kFailed || leaves) {
    return OkStatus();
  }
  return Status(Code::kFailedPrecondition,
                "current transaction is aborted, commands ignored until end of transaction block")
      .SqlState("25P02");
}

Status EmbeddedServer::CheckWrites(const catalog::EmbeddedStatement& statement) const {
  if (statement.read_only() || block_ == Block::kNone || !read_only_) {
    return OkStatus();
  }
  return Status(Code::kFailedPrecondition, "cannot change anything in a read-only transaction")
      .SqlState("25006");
}

Status EmbeddedServer::LetOthersWork(std::string_view statement) {
  const catalog::ChargesMemory charges(memory_.get());
  using Transaction = catalog::EmbeddedSession::Transaction;
  ASSIGN_OR_RETURN(const std::string temporary, session_->TemporaryNameIn(statement));
  if (!temporary.empty()) {
    return Unimplemented(fmt::format("'{}' is temporary: other connections read for this "
                                     "statement, and do not see it",
                                     temporary))
        .Hint("CREATE TABLE or VIEW without TEMPORARY, and DROP it afterwards");
  }
  const Transaction transaction = session_->transaction();
  if (transaction == Transaction::kWrite) {
    return Status(Code::kFailedPrecondition,
                  "this statement cannot run in a transaction that has written: other connections "
                  "read and write for it, and neither see that nor get past its lock")
        .SqlState("25001")
        .Hint("COMMIT first");
  }
  const auto reads = [](const auto& named) {
    return named.second.source != nullptr && named.second.source->begun &&
           !named.second.source->done;
  };
  if (transaction == Transaction::kRead && std::none_of(portals_.begin(), portals_.end(), reads) &&
      std::none_of(cursors_.begin(), cursors_.end(), reads)) {
    // As in READ COMMITTED: the next statement reads what is committed by then.
    RETURN_IF_ERROR(session_->Run("COMMIT"));
    RETURN_IF_ERROR(session_->Run("BEGIN"));
  }
  return OkStatus();
}

// A script of Query.

Status EmbeddedServer::BeginScript(std::string_view body) {
  in_script_ = true;
  place_ = 0;
  script_.clear();
  ASSIGN_OR_RETURN(const std::string_view sql, ReadQuery(body));
  script_ = sql;
  prepared_.erase(prepared_.begin(), prepared_.upper_bound(""));  // the unnamed one
  portals_.erase(portals_.begin(), portals_.upper_bound(""));
  statements_.clear();
  RETURN_IF_ERROR(catalog::CheckTokens(script_));
  statements_ = catalog::SplitEmbeddedScript(script_);
  next_ = 0;
  if (statements_.empty()) {
    AppendMessage(*out_, 'I', {});
  }
  return OkStatus();
}

// Runs one statement, or ends the script.
Status EmbeddedServer::NextOfScript() {
  if (next_ == statements_.size()) {
    if (block_ == Block::kImplicit) {
      RETURN_IF_ERROR(CommitBlock());
    }
    in_script_ = false;
    Ready();
    return OkStatus();
  }
  const Span span = statements_[next_];
  place_ = span.begin;
  RETURN_IF_ERROR(RunOne(TextOf(script_, span)));
  ++next_;
  return OkStatus();
}

Status EmbeddedServer::RunOne(std::string_view sql) {
  RETURN_IF_ERROR(Begins(sql));
  ASSIGN_OR_RETURN(const std::optional<SessionStatement> own, ReadSessionStatement(sql));
  RETURN_IF_ERROR(CheckBlock(own.has_value() ? &*own : nullptr));
  if (statements_.size() > 1) {
    RETURN_IF_ERROR(EnterImplicit(sql));
  }
  if (own.has_value()) {
    return RunSession(*own, sql, {});
  }
  ASSIGN_OR_RETURN(std::shared_ptr<catalog::EmbeddedStatement> statement, session_->Prepare(sql));
  if (statement->parameters() > 0) {
    return Status(Code::kInvalidArgument, "there is no parameter $1").SqlState("42P02");
  }
  RETURN_IF_ERROR(CheckWrites(*statement));
  Running running;
  running.source = std::make_shared<Source>(std::move(statement));
  running.verb = catalog::VerbOf(sql, catalog::Dialect::kSqlite);
  running_ = std::move(running);
  return OkStatus();
}

// The statements of one Query, or up to a Sync, are one transaction.
Status EmbeddedServer::EnterImplicit(std::string_view sql) {
  const std::string_view first = FirstWord(sql);
  const bool alone = EqualsWord(first, "VACUUM") || EqualsWord(first, "PRAGMA") ||
                     EqualsWord(first, "SET") || EqualsWord(first, "BEGIN") ||
                     EqualsWord(first, "START") || EqualsWord(first, "COMMIT") ||
                     EqualsWord(first, "END") || EqualsWord(first, "ROLLBACK");
  return block_ == Block::kNone && !alone ? BeginBlock(Block::kImplicit) : OkStatus();
}

}  // namespace sluice::server::pgwire
