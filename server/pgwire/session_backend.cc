#include <fmt/core.h>

#include <utility>

#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/cancel_request_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"

// The back end's side of a session.
namespace sluice::server::pgwire {
namespace {

constexpr int kReadsOfServerInARow = 8;

}  // namespace

void WireSession::WaitForServer() {
  if (reading_server_ || state_ == State::kClosed) {
    return;
  }
  reading_server_ = true;
  server_->WaitReadable([self = shared_from_this()](bool ok) {
    self->reading_server_ = false;
    if (self->state_ == State::kClosed) {
      self->LetServerGo();
      return;
    }
    if (!ok) {
      self->ServerGone();
      return;
    }
    self->ReadServer();
  });
}

void WireSession::ReadServer() {
  for (int i = 0; i < kReadsOfServerInARow && state_ != State::kClosed; ++i) {
    const ssize_t got = server_->Read(house_.buffer.data(), house_.buffer.size());
    if (got < 0) {
      ServerGone();
      return;
    }
    if (got == 0) {
      break;
    }
    if (embedded_ == nullptr) {
      client_.ExpectAnswer();
    }
    conversation_->FromServer({house_.buffer.data(), static_cast<size_t>(got)});
    LowerKept();
    WaitForClient();
    if (writing_client_ || (borrower_ != nullptr && borrower_->writing())) {
      return;  // continues when the receiver has taken it
    }
    if (server_->drained()) {
      break;
    }
  }
  WaitForServer();
}

// The server may end without a word to an idle session; and its last words, unless they are an
// error, go to the statement of ours that has borrowed the connection. A query of the client's that
// ran there has heard them, or sees the end of its answer.
void WireSession::ServerGone() {
  if (state_ == State::kTalking && embedded_ == nullptr &&
      (conversation_->statement_runs() || !conversation_->server_owes_answer()) &&
      !conversation_->server_has_ended()) {
    std::string bytes;
    AppendError(bytes,
                Status(Code::kUnavailable, "the connection to PostgreSQL was lost")
                    .SqlState("08006")
                    .Hint("connect again, and look at SHOW JOBS"),
                {}, 0, "FATAL");
    conversation_->Says(bytes);
  }
  Close();
}

void WireSession::ToServer(std::string_view bytes) {
  if (state_ == State::kClosed || bytes.empty()) {
    return;
  }
  if (cancels_ > 0) {
    after_cancel_ += bytes;
    return;
  }
  if (embedded_ == nullptr) {  // ours answers from another thread
    client_.ExpectAnswer();
  }
  if (!server_->Write(bytes)) {
    Close();
    return;
  }
  if (server_->unsent() > 0 && !writing_server_) {
    writing_server_ = true;
    server_->WaitSent([self = shared_from_this()](bool ok) {
      self->writing_server_ = false;
      if (self->state_ == State::kClosed) {
        return;
      }
      if (!ok) {
        self->Close();
        return;
      }
      self->WaitForClient();
      if (self->borrower_ != nullptr) {
        self->borrower_->Wait();
      }
    });
  }
}

void WireSession::CancelBack(std::function<void()> then) {
  if (embedded_ != nullptr) {
    embedded_->Cancel();
    return then();
  }
  ++cancels_;
  CancelBackend(house_.context, house_.upstream, process_, backend_key_,
                [self = shared_from_this(), then = std::move(then)] {
                  if (--self->cancels_ == 0) {
                    self->SendAfterCancel();
                  }
                  then();
                });
}

void WireSession::SendAfterCancel() {
  if (state_ == State::kClosed || after_cancel_.empty()) {
    return;
  }
  ToServer(std::exchange(after_cancel_, {}));
  if (!writing_server_ && state_ != State::kClosed) {
    WaitForClient();
    if (borrower_ != nullptr) {
      borrower_->Wait();
    }
  }
}

}  // namespace sluice::server::pgwire
