#include <utility>

#include "base/client_address.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/session_internal.h"

// The client's side of a session: connecting, reading and writing.
namespace sluice::server::pgwire {
namespace {

// Bytes read from the client while a statement of ours runs: enough to notice that it disconnects.
constexpr size_t kMaxHeldBytes = size_t{64} << 10;
constexpr std::chrono::seconds kLookAfterClient(1);
// Consecutive reads of one connection before others have their turn.
constexpr int kReadsInARow = 8;

}  // namespace

WireSession::WireSession(SessionHouse& house, int descriptor, bool local, std::string address)
    : house_(house),
      local_(local),
      client_(house.context, descriptor),
      deadline_(house.context),
      watch_(house.context) {
  login_.address = std::move(address);
}

WireSession::~WireSession() {
  const auto known = house_.sessions.find(process_);
  if (known != house_.sessions.end() && known->second == this) {
    house_.sessions.erase(known);
  }
  house_.loans.erase(Sha256Of(token_));
}

void WireSession::Start() {
  before_login_ = house_.before_login.Add(NetworkOf(login_.address), [weak = weak_from_this()] {
    if (const auto self = weak.lock()) {
      self->Close();
    }
  });
  SetDeadline(kLoginPatience);
  WaitForClient();
}

void WireSession::SetDeadline(std::chrono::seconds from_now) {
  deadline_.expires_after(from_now);
  deadline_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (!error && self->state_ != State::kTalking) {
      self->Close();
    }
  });
}

void WireSession::WaitForClient() {
  if (reading_client_ || state_ == State::kClosed) {
    return;
  }
  reading_client_ = true;
  client_.WaitReadable([self = shared_from_this()](bool ok) {
    self->reading_client_ = false;
    if (self->state_ == State::kClosed) {
      return;
    }
    if (!ok) {
      self->Close();
      return;
    }
    self->ReadClient();
  });
}

// On another thread. Anybody may ask for handshakes, so the networks take turns.
void WireSession::ShakeHands() {
  client_.LendHandshake();
  const Status put = house_.login_work.Put(
      "handshakes of " + NetworkOf(login_.address),
      [weak = weak_from_this(), &context = house_.context] {
        auto self = weak.lock();
        if (self == nullptr) {
          return;
        }
        const bool ok = self->client_.AdvanceHandshake();
        ReadySockets::Post(context, [self = std::move(self), ok] {
          self->client_.ReturnHandshake();
          if (!ok) {
            self->Close();
          } else if (self->state_ != State::kClosed) {
            self->WaitForClient();
          }
        });
      },
      ClientsBeforeLogin::MostByDescriptors());
  if (!put.ok()) {
    client_.ReturnHandshake();
    Close();
  }
}

void WireSession::ReadClient() {
  if (client_.in_handshake()) {
    ShakeHands();
    return;
  }
  for (int i = 0; i < kReadsInARow && state_ != State::kClosed; ++i) {
    const ssize_t got = client_.Read(house_.buffer.data(), house_.buffer.size());
    if (got < 0) {
      Close();
      return;
    }
    if (got == 0) {
      break;
    }
    TakeFromClient({house_.buffer.data(), static_cast<size_t>(got)});
    if (writing_server() || state_ == State::kConnecting || state_ == State::kVerifier ||
        state_ == State::kTurn) {
      return;  // continues when the bytes have been passed on
    }
    if (conversation_ != nullptr && conversation_->held_bytes() > kMaxHeldBytes) {
      WatchClient();
      return;  // continues when the statement has ended
    }
    if (client_.drained()) {
      break;
    }
  }
  WaitForClient();
}

// While nothing is read from a client, a timer checks whether it is still there.
void WireSession::WatchClient() {
  watch_.expires_after(kLookAfterClient);
  watch_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
    if (error || self->state_ == State::kClosed || self->reading_client_) {
      return;
    }
    if (self->client_.PeerIsGone()) {
      self->Close();
    } else {
      self->WatchClient();
    }
  });
}

void WireSession::TakeFromClient(std::string_view bytes) {
  if (state_ == State::kTalking) {
    conversation_->FromClient(bytes);
    if (state_ == State::kTalking) {
      const Status room = unfinished_->Set(conversation_->unfinished_bytes());
      if (!room.ok()) {
        Refuse(room);
      }
    }
    return;
  }
  held_ += bytes;
  TakeLogin();
}

void WireSession::Refuse(const Status& status) {
  std::string bytes;
  AppendError(bytes, status, {}, 0, "FATAL");
  RefuseInWords(bytes);
}

void WireSession::RefuseInWords(const std::string& error) {
  ToClient(error);
  Close();
}

void WireSession::ToClient(std::string_view bytes) {
  if (state_ == State::kClosed) {
    return;
  }
  if (!client_.Write(bytes)) {
    Close();
    return;
  }
  if (client_.unsent() > 0 && !writing_client_) {
    writing_client_ = true;
    client_.WaitSent([self = shared_from_this()](bool ok) { self->SentToClient(ok); });
  }
}

void WireSession::SentToClient(bool ok) {
  writing_client_ = false;
  if (state_ == State::kClosed) {
    return;
  }
  if (!ok) {
    Close();
    return;
  }
  if (line_ != nullptr) {
    line_->Taken(std::exchange(to_take_, 0));
  }
  if (server_ != nullptr && state_ == State::kTalking) {
    WaitForServer();
  }
}

void WireSession::Cancel(std::function<void()> then) {
  if (conversation_ != nullptr && conversation_->statement_runs()) {
    stop_.request_stop();
  } else if (state_ == State::kTalking) {
    return CancelBack(std::move(then));
  }
  then();
}

void WireSession::Shutdown() {
  if (state_ == State::kClosed) {
    return;
  }
  std::string bytes;
  AppendError(bytes,
              Status(Code::kUnavailable, "terminating connection due to administrator command")
                  .SqlState("57P01"),
              {}, 0, "FATAL");
  if (state_ == State::kTalking) {
    conversation_->Says(bytes);
  }
  Close();
}

void WireSession::LetServerGo() {
  if (server_ != nullptr) {
    server_->Close();
  }
  counted_.reset();
}

void WireSession::Close() {
  if (state_ == State::kClosed) {
    return;
  }
  // Somebody who hangs up before a wrong password is answered has guessed, too.
  const bool guessed = std::exchange(password_under_way_, false);
  state_ = State::kClosed;
  unfinished_.reset();
  kept_.reset();
  house_.before_login.Remove(before_login_);
  if (guessed) {
    CountFailure(Cancelled("the login ended before the server had answered the password"));
  }
  house_.throttle.LeaveQueue(std::exchange(in_queue_, 0));
  attempt_ = {};
  deadline_.cancel();
  watch_.cancel();
  if (backend_ != nullptr) {
    backend_->Close();
  }
  gone_.request_stop();
  GiveUp();
  stop_.request_stop();
  EndLoan();
  // A server's back end works on for a client that is gone until it reads or writes the next time,
  // and counts as long.
  if (embedded_ == nullptr && reading_server_ && conversation_ != nullptr &&
      conversation_->server_owes_answer()) {
    server_->EndWriting();
  } else {
    LetServerGo();
  }
  client_.Close();
}

}  // namespace sluice::server::pgwire
