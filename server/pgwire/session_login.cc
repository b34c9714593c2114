#include <fmt/core.h>

#include <utility>

#include "base/log.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"
#include "server/statements/login_name.h"

// The start of a session: identifies the client and logs it in.
namespace sluice::server::pgwire {
namespace {

// Limit before login, when a client needs no more.
constexpr size_t kMaxStartupBytes = size_t{10} << 10;

// Before login nobody is told where the database is, or as whom this gateway logs in there.
Status ToldToStranger(const Status& why) {
  if (why.code() != Code::kUnavailable || !why.sqlstate().starts_with("08")) {
    return why;
  }
  return Status(Code::kUnavailable, "the database cannot be reached")
      .SqlState(why.sqlstate())
      .Hint("the gateway's log says why");
}

}  // namespace

void WireSession::TakeLogin() {
  if (held_.size() > kMaxStartupBytes) {
    Refuse(Status(Code::kInvalidArgument, "the client says too much before it has logged in")
               .SqlState("08P01"));
    return;
  }
  while ((state_ == State::kStartup && TakeStartup()) ||
         (state_ == State::kPassword && TakePassword()) ||
         ((state_ == State::kScramFirst || state_ == State::kScramFinal) && TakeScram())) {
  }
}

// True if there may be more to take.
bool WireSession::TakeStartup() {
  if (held_.size() < kLengthBytes) {
    return false;
  }
  const size_t length = LoadBigEndian<uint32_t>(held_);
  if (length < 2 * kLengthBytes || length > kMaxStartupBytes) {
    Refuse(Status(Code::kInvalidArgument, "invalid length of startup packet").SqlState("08P01"));
    return false;
  }
  if (held_.size() < length) {
    return false;
  }
  const std::string body = held_.substr(kLengthBytes, length - kLengthBytes);
  held_.erase(0, length);
  Result<StartupMessage> startup = ReadStartup(body);
  if (!startup.ok()) {
    Refuse(startup.status());
    return false;
  }
  constexpr uint32_t kMajor = 0xffff0000U;
  switch (startup->code) {
    case kTlsCode: {
      SSL_CTX* const tls = client_.tls() ? nullptr : house_.certificate.Newest();
      if (!held_.empty()) {  // an attacker may have injected these bytes
        Close();
        return false;
      }
      ToClient(tls != nullptr ? "S" : "N");
      if (tls != nullptr) {
        end_point_ = house_.certificate.end_point();
        client_.StartTls(tls, true);
      }
      return false;
    }
    case kGssCode:
      ToClient("N");
      return true;
    case kCancelCode: {
      BigEndianReader reader(body);
      reader.Take<uint32_t>();
      const uint32_t process = reader.Take<uint32_t>();
      const uint32_t key = reader.Take<uint32_t>();
      const auto found = house_.sessions.find(process);
      if (found != house_.sessions.end() && found->second->HasKey(key)) {
        AuditedClient asks = found->second->AsAudited();
        asks.address = login_.address;
        house_.audit.Cancel(asks, process);
        found->second->Cancel([self = shared_from_this()] { self->Close(); });
      } else {
        Close();
      }
      return false;
    }
    default:
      break;
  }
  if ((startup->code & kMajor) != (kProtocol3 & kMajor)) {
    Refuse(Status(Code::kUnimplemented,
                  fmt::format("unsupported frontend protocol {}.{}: server supports 3.0",
                              startup->code >> 16U, startup->code & 0xffffU))
               .SqlState("0A000"));
    return false;
  }
  startup_ = *std::move(startup);
  const std::string older = NegotiateStartup(startup_);
  if (!older.empty()) {
    ToClient(older);
  }
  login_.user = startup_.Find("user");
  login_.database = startup_.Find("database");
  if (login_.user.empty()) {
    Refuse(Status(Code::kInvalidArgument, "no PostgreSQL user name specified in startup packet")
               .SqlState("28000"));
    return false;
  }
  login_.database = login_.database.empty() ? login_.user : login_.database;
  if (const Status named = CheckLoginNames(login_.user, login_.database);
      house_.embedded == nullptr && !named.ok()) {
    Refuse(RecordLogin(named));
    return false;
  }
  const Status early = house_.throttle.Check(login_.address, login_.user);
  if (!early.ok()) {
    Refuse(RecordLogin(early));
    return false;
  }
  if (house_.client_login == ClientLogin::kTrusted) {
    if (const Status admitted = house_.admits == nullptr ? OkStatus() : house_.admits();
        !admitted.ok()) {
      Refuse(RecordLogin(admitted));
      return false;
    }
    AwaitTurn();
    return false;
  }
  if (house_.client_login == ClientLogin::kScram) {
    AskForVerifier();
    return false;
  }
  return AskForPassword();
}

bool WireSession::AskForPassword() {
  if (!client_.tls() && !local_) {
    Refuse(Status(Code::kPermissionDenied, "the gateway asks for the password inside TLS only")
               .SqlState("28000")
               .Hint("connect with sslmode=require"));
    return false;
  }
  std::string question;
  AppendAuthentication(question, Authentication::kPassword);
  ToClient(question);
  state_ = State::kPassword;
  return true;
}

// The body of the client's answer; nullopt: incomplete, or refused.
std::optional<std::string> WireSession::TakeAnswer() {
  if (held_.size() < kHeaderBytes) {
    return std::nullopt;
  }
  const size_t length = LoadBigEndian<uint32_t>(std::string_view(held_).substr(1));
  if (held_[0] != 'p' || length < kLengthBytes || length > kMaxStartupBytes) {
    Refuse(Status(Code::kInvalidArgument, "expected password response").SqlState("08P01"));
    return std::nullopt;
  }
  if (held_.size() < 1 + length) {
    return std::nullopt;
  }
  std::string body = held_.substr(kHeaderBytes, length - kLengthBytes);
  held_.erase(0, 1 + length);
  return body;
}

bool WireSession::TakePassword() {
  const std::optional<std::string> body = TakeAnswer();
  if (!body.has_value()) {
    return false;
  }
  const Result<std::string_view> password = ReadPassword(*body);
  if (!password.ok()) {
    Refuse(password.status());
    return false;
  }
  login_.password = *password;
  secret_.password = *password;
  AwaitTurn();
  return false;
}

void WireSession::AwaitTurn() {
  state_ = State::kTurn;
  in_queue_ = house_.throttle.Admit(
      login_.address, login_.user,
      [weak = weak_from_this(), &context = house_.context](Result<LoginThrottle::Attempt> turn) {
        auto mine = std::make_shared<Result<LoginThrottle::Attempt>>(std::move(turn));
        ReadySockets::Post(context, [weak, mine = std::move(mine)] {
          const auto self = weak.lock();
          if (self == nullptr || self->state_ != State::kTurn) {
            return;
          }
          self->in_queue_ = 0;
          if (!mine->ok()) {
            self->Refuse(self->RecordLogin(mine->status()));
            return;
          }
          self->attempt_ = *std::move(*mine);
          self->Connect();
        });
      });
}

void WireSession::AskForVerifier() {
  state_ = State::kVerifier;
  house_.verifiers->Find(login_.user,
                         [weak = weak_from_this(), &context = house_.context](auto verifier) {
                           ReadySockets::Post(context, [weak, verifier = std::move(verifier)] {
                             const auto self = weak.lock();
                             if (self != nullptr && self->state_ == State::kVerifier) {
                               self->AskForScram(verifier);
                             }
                           });
                         });
}

void WireSession::AskForScram(const Result<ScramVerifier>& verifier) {
  if (!verifier.ok()) {
    Refuse(ToldToStranger(RecordLogin(verifier.status())));
    return;
  }
  server_key_ = verifier->server_key;
  scram_ = std::make_unique<ScramServer>(*verifier, end_point_, RandomToken());
  std::string mechanisms;
  for (const std::string_view mechanism : scram_->mechanisms()) {
    mechanisms += mechanism;
    mechanisms += '\0';
  }
  mechanisms += '\0';
  state_ = State::kScramFirst;
  std::string question;
  AppendAuthentication(question, Authentication::kScram, mechanisms);
  ToClient(question);
  TakeLogin();
  WaitForClient();
}

bool WireSession::TakeScram() {
  const std::optional<std::string> body = TakeAnswer();
  if (!body.has_value()) {
    return false;
  }
  const bool first = state_ == State::kScramFirst;
  if (!first) {  // many clients may have come as far as this at once
    auto turn = house_.throttle.AdmitAtOnce(login_.address, login_.user);
    if (!turn.ok()) {
      Refuse(RecordLogin(turn.status()));
      return false;
    }
    attempt_ = *std::move(turn);
  }
  Result<std::string> answer = first ? TakeScramFirst(*body) : scram_->Final(*body);
  if (!answer.ok() && answer.status().sqlstate() == "28P01") {
    answer = Status(Code::kPermissionDenied,
                    fmt::format("password authentication failed for user \"{}\"", login_.user))
                 .SqlState("28P01");
    CountFailure(answer.status());
  }
  if (!answer.ok()) {
    Refuse(answer.status());
    return false;
  }
  std::string said;
  AppendAuthentication(said, first ? Authentication::kScramContinue : Authentication::kScramFinal,
                       *answer);
  ToClient(said);
  if (first) {
    state_ = State::kScramFinal;
    return true;
  }
  attempt_.PasswordIsRight();
  if (house_.embedded != nullptr) {  // there is no server to log in to
    scram_.reset();
    Connect();
    return false;
  }
  secret_.keys = ScramKeys{scram_->client_key(), std::exchange(server_key_, {})};
  scram_.reset();
  Result<std::string> ticket = house_.tickets->Issue({login_.user, login_.database, *secret_.keys});
  if (!ticket.ok()) {
    Refuse(ticket.status());
    return false;
  }
  login_.desk = house_.tickets->link();
  login_.password = *std::move(ticket);
  Connect();
  return false;
}

Result<std::string> WireSession::TakeScramFirst(std::string_view body) {
  ASSIGN_OR_RETURN(const SaslInitialMessage initial, ReadSaslInitial(body));
  return scram_->First(initial.mechanism, initial.message);
}

AuditedClient WireSession::AsAudited() const {
  return {kDoorName, login_.user, login_.address, login_.database};
}

Status WireSession::RecordLogin(const Status& outcome, int64_t backend) const {
  RETURN_IF_ERROR(house_.audit.Login(AsAudited(), outcome, backend));
  return outcome;
}

Status WireSession::Admitted(bool limited, int64_t backend) {
  attempt_.Succeeded();
  const std::string role = limited ? login_.user : "";
  Result<RoleUse::Session> counted = house_.roles.BeginSession(role);
  if (!counted.ok()) {
    return RecordLogin(counted.status());
  }
  counted_.emplace(*std::move(counted));
  unfinished_.emplace(house_.role_bytes, role);
  kept_.emplace(house_.role_bytes, role);
  return RecordLogin(OkStatus(), backend);
}

void WireSession::CountFailure(const Status& why) {
  // The client is refused whether or not that can be recorded.
  [[maybe_unused]] const Status recorded = RecordLogin(why);
  attempt_.Failed(client_.tls() ? LoginOver::kTls : LoginOver::kPlain);
}

void WireSession::Connect() {
  state_ = State::kConnecting;
  if (house_.embedded != nullptr) {
    OpenEmbedded();
    return;
  }
  password_under_way_ = house_.client_login == ClientLogin::kPassword;
  // The server may answer a wrong password late, so that guessing takes longer.
  SetDeadline(kLoginPatience);
  backend_ = std::make_shared<BackendConnection>(house_.context, house_.upstream, house_.client_tls,
                                                 house_.buffer, &house_.login_work);
  backend_->Start(startup_, std::exchange(secret_, {}),
                  [weak = weak_from_this()](BackendConnection::Outcome outcome) {
                    const auto self = weak.lock();
                    if (self != nullptr && self->state_ == State::kConnecting) {
                      self->Connected(std::move(outcome));
                    }
                  });
}

void WireSession::Connected(BackendConnection::Outcome outcome) {
  password_under_way_ = false;
  if (!outcome.status.ok()) {
    Refuse(ToldToStranger(RecordLogin(outcome.status)));
    return;
  }
  if (!outcome.refusal.empty()) {
    const Status why = ReadError(std::string_view(outcome.refusal).substr(kHeaderBytes));
    if (why.sqlstate().starts_with("28")) {
      CountFailure(why);
    } else {
      [[maybe_unused]] const Status recorded = RecordLogin(why);  // it is refused in any case
    }
    RefuseInWords(outcome.refusal);
    return;
  }
  if (house_.client_login != ClientLogin::kTrusted && !outcome.login->asked()) {
    // "trust", "peer" or "ident" in its pg_hba.conf: it did not verify who the user is.
    Refuse(RecordLogin(
        Status(Code::kPermissionDenied,
               fmt::format("PostgreSQL let role \"{}\" in without asking for the password, "
                           "so the password is unverified",
                           login_.user))
            .SqlState("28000")
            .Hint("let pg_hba.conf ask for passwords (scram-sha-256) where the gateway "
                  "connects from, or start it with --auth trust")));
    return;
  }
  const auto superuser = outcome.login->parameters().find("is_superuser");
  const bool limited =
      login_.user != house_.upstream.user &&
      (superuser == outcome.login->parameters().end() || superuser->second != "on");
  const Status admitted = Admitted(limited, outcome.login->process());
  if (!admitted.ok()) {
    Refuse(admitted);
    return;
  }
  server_ = std::move(outcome.channel);
  backend_key_ = outcome.login->key();
  Ready({outcome.login->process(), outcome.login->greeting(), outcome.login->parameters()});
}

// The back end is ready for the client's first statement.
void WireSession::Ready(FirstWords greeting) {
  deadline_.cancel();
  process_ = greeting.process;
  key_ = RandomKey();
  house_.sessions[process_] = this;
  std::string said;
  AppendAuthentication(said, Authentication::kOk);
  said += greeting.messages;
  AppendKeyData(said, process_, key_);
  AppendReady(said, 'I');
  state_ = State::kTalking;
  house_.before_login.Remove(before_login_);
  house_.service.LoggedIn(login_);
  conversation_ = std::make_unique<Conversation>(
      *this, std::move(greeting.parameters),
      embedded_ == nullptr ? catalog::Dialect::kPostgres : catalog::Dialect::kSqlite);
  ToClient(said);
  if (!held_.empty()) {
    conversation_->FromClient(std::exchange(held_, {}));
  }
  WaitForClient();
  WaitForServer();
}

}  // namespace sluice::server::pgwire
