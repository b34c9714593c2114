#include <fmt/core.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"
#include "server/pgwire/splice_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr size_t kMaxHandshakeBytes = size_t{10} << 10;
constexpr int kBorrowerReads = 8;
constexpr const char* kPort = "5432";  // a name only

bool IsThisUser(int descriptor) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == geteuid();
}

}  // namespace

Borrower::Borrower(SessionHouse& house, int descriptor)
    : house_(house), channel_(std::make_unique<Channel>(house.context, descriptor)) {}

void Borrower::Wait() {
  if (reading_ || logging_in_ || closed()) {
    return;
  }
  reading_ = true;
  channel_->WaitReadable([self = shared_from_this()](bool ok) {
    self->reading_ = false;
    if (self->closed()) {
      return;
    }
    if (!ok) {
      self->Close();
      return;
    }
    self->Read();
  });
}

void Borrower::Read() {
  for (int i = 0; i < kBorrowerReads && !logging_in_ && !closed(); ++i) {
    const ssize_t got = channel_->Read(house_.buffer.data(), house_.buffer.size());
    if (got < 0) {
      Close();
      return;
    }
    if (got == 0) {
      break;
    }
    Take({house_.buffer.data(), static_cast<size_t>(got)});
    if (session_ != nullptr && session_->writing_server()) {
      return;  // goes on when the back end has taken it
    }
  }
  Wait();
}

void Borrower::Take(std::string_view bytes) {
  if (session_ != nullptr) {
    session_->FromBorrower(bytes);
    return;
  }
  held_ += bytes;
  if (held_.size() > kMaxHandshakeBytes) {
    Close();
    return;
  }
  while (!closed() && session_ == nullptr && !logging_in_ &&
         (asked_ ? TakeToken() : TakeStartup())) {
  }
}

// True where there may be more to take.
bool Borrower::TakeStartup() {
  if (held_.size() < kLengthBytes) {
    return false;
  }
  const size_t length = ReadUint32(held_);
  if (length < 2 * kLengthBytes || length > kMaxHandshakeBytes) {
    Close();
    return false;
  }
  if (held_.size() < length) {
    return false;
  }
  const std::string body = held_.substr(kLengthBytes, length - kLengthBytes);
  held_.erase(0, length);
  BodyReader reader(body);
  if (reader.Uint32() == kCancelCode) {
    // Of a statement that runs on a borrowed back end.
    const uint32_t process = reader.Uint32();
    const uint32_t key = reader.Uint32();
    const auto found = house_.sessions.find(process);
    if (found == house_.sessions.end()) {  // of one who has logged in with a ticket
      CancelBackend(house_.context, house_.upstream, process, key);
    } else if (found->second->HasKey(key)) {
      found->second->CancelServer();
    }
    Close();
    return false;
  }
  Result<StartupMessage> startup = ReadStartup(body);
  if (!startup.ok()) {
    Refuse(startup.status());
    return false;
  }
  startup_ = *std::move(startup);
  std::string question;
  constexpr char kCleartextPassword[] = {0, 0, 0, 3};
  AppendMessage(question, 'R', {kCleartextPassword, sizeof(kCleartextPassword)});
  Send(question);
  asked_ = true;
  return true;
}

bool Borrower::TakeToken() {
  if (held_.size() < kHeaderBytes) {
    return false;
  }
  const size_t length = ReadUint32(std::string_view(held_).substr(1));
  if (length < kLengthBytes || length > kMaxHandshakeBytes) {
    Close();
    return false;
  }
  if (held_.size() < 1 + length) {
    return false;
  }
  const Result<std::string_view> token =
      ReadPassword(std::string_view(held_).substr(kHeaderBytes, length - kLengthBytes));
  if (held_[0] != 'p' || !token.ok()) {
    Refuse(Status(Code::kInvalidArgument, "expected password response").SqlState("08P01"));
    return false;
  }
  const auto found = house_.loans.find(std::string(*token));
  if (found == house_.loans.end()) {
    Result<TicketLogin> login = house_.tickets.Read(*token);
    if (login.ok()) {
      held_.clear();
      LogIn(*std::move(login));
    } else {
      Refuse(Status(Code::kPermissionDenied, "the statement that borrows the session is over")
                 .SqlState("28000"));
    }
    return false;
  }
  WireSession* const session = found->second;
  house_.loans.erase(found);  // good for once
  held_.clear();
  Send(session->Greeting());
  session_ = session;
  session->Lend(shared_from_this());
  return false;
}

void Borrower::LogIn(TicketLogin login) {
  if (login.user != startup_.Find("user") || login.database != startup_.Find("database")) {
    Refuse(Status(Code::kPermissionDenied, "the ticket is somebody else's").SqlState("28000"));
    return;
  }
  logging_in_ = true;
  // Lives in what it waits for.
  const auto backend = std::make_shared<BackendConnection>(house_.context, house_.upstream,
                                                           house_.client_tls, house_.buffer);
  backend->Start(startup_, {"", std::move(login.keys)},
                 [self = shared_from_this()](BackendConnection::Outcome outcome) {
                   self->LoggedIn(std::move(outcome));
                 });
}

void Borrower::LoggedIn(BackendConnection::Outcome outcome) {
  if (closed()) {
    return;
  }
  if (!outcome.status.ok()) {
    Refuse(outcome.status);
    return;
  }
  if (!outcome.refusal.empty()) {
    Send(outcome.refusal);
    Close();
    return;
  }
  std::string greeting;
  constexpr char kAuthenticated[] = {0, 0, 0, 0};
  AppendMessage(greeting, 'R', {kAuthenticated, sizeof(kAuthenticated)});
  greeting += outcome.login->greeting();
  AppendKeyData(greeting, outcome.login->process(), outcome.login->key());
  AppendReady(greeting, 'I');
  if (channel_->Write(greeting)) {
    std::make_shared<Splice>(std::move(channel_), std::move(outcome.channel), house_.buffer)
        ->Start();
  } else {
    Close();
  }
}

void Borrower::Refuse(const Status& status) {
  std::string refusal;
  AppendError(refusal, status, {}, 0, "FATAL");
  Send(refusal);
  Close();
}

void Borrower::Send(std::string_view bytes) {
  if (closed()) {
    return;
  }
  if (!channel_->Write(bytes)) {
    Close();
    return;
  }
  if (channel_->unsent() > 0 && !writing_) {
    writing_ = true;
    channel_->WaitSent([self = shared_from_this()](bool ok) {
      self->writing_ = false;
      if (!ok) {
        self->Close();
      } else if (self->session_ != nullptr) {
        self->session_->BorrowerHasRoom();
      }
    });
  }
}

void Borrower::Close() {
  if (closed()) {
    return;
  }
  channel_->Close();
  if (WireSession* const session = std::exchange(session_, nullptr)) {
    session->BorrowerGone(this);
  }
}

LoanDesk::LoanDesk(SessionHouse& house) : house_(house), acceptor_(house.context) {}

Status LoanDesk::Listen() {
  house_.link.host = fmt::format("@sluice-{}-{}", getpid(), RandomToken());
  house_.link.port = kPort;
  // libpq connects to host/.s.PGSQL.port; '@' stands for the NUL of an abstract name.
  std::string path = fmt::format("{}/.s.PGSQL.{}", house_.link.host, kPort);
  path[0] = '\0';
  boost::system::error_code error;
  const boost::asio::local::stream_protocol::endpoint endpoint(path);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) {
    acceptor_.bind(endpoint, error);
  }
  if (!error) {
    acceptor_.listen(boost::asio::socket_base::max_listen_connections, error);
  }
  if (error) {
    return Unavailable(fmt::format("cannot listen on {}: {}", house_.link.host, error.message()));
  }
  Accept();
  return OkStatus();
}

void LoanDesk::Accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error,
                                boost::asio::local::stream_protocol::socket socket) {
    if (!acceptor_.is_open()) {
      return;
    }
    boost::system::error_code ignored;
    if (!error && IsThisUser(socket.native_handle())) {
      std::make_shared<Borrower>(house_, socket.release(ignored))->Wait();
    }
    Accept();
  });
}

void LoanDesk::Close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

// The session's side of a loan.

std::string WireSession::Greeting() const {
  std::string greeting;
  constexpr char kAuthenticated[] = {0, 0, 0, 0};
  AppendMessage(greeting, 'R', {kAuthenticated, sizeof(kAuthenticated)});
  for (const auto& [name, value] : conversation_->parameters()) {
    AppendParameterStatus(greeting, name, value);
  }
  AppendKeyData(greeting, process_, key_);
  AppendReady(greeting, conversation_->status());
  return greeting;
}

void WireSession::Lend(std::shared_ptr<Borrower> borrower) {
  borrower_ = std::move(borrower);
  conversation_->Lend();
}

void WireSession::FromBorrower(std::string_view bytes) {
  conversation_->FromBorrower(bytes);
}

void WireSession::ToBorrower(std::string_view bytes) {
  if (borrower_ != nullptr) {
    borrower_->Send(bytes);
  }
}

void WireSession::BorrowerHasRoom() {
  if (state_ == State::kTalking) {
    WaitForServer();
  }
}

void WireSession::BorrowerGone(const Borrower* borrower) {
  if (borrower_.get() != borrower) {
    return;
  }
  borrower_.reset();
  if (state_ == State::kTalking) {
    conversation_->TakeBack();
    WaitForServer();
  }
}

void WireSession::CancelServer() {
  CancelBackend(house_.context, house_.upstream, process_, backend_key_);
}

void WireSession::EndLoan() {
  house_.loans.erase(token_);
  token_.clear();
  if (const std::shared_ptr<Borrower> borrower = std::exchange(borrower_, nullptr)) {
    borrower->Close();
  }
}

}  // namespace sluice::server::pgwire
