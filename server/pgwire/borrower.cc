#include <fmt/core.h>

#include <utility>

#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/digests_internal.h"
#include "server/pgwire/session_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr int kBorrowerReads = 8;

}  // namespace

Borrower::Borrower(WireSession& session, std::vector<char>& buffer,
                   std::unique_ptr<Channel> channel)
    : buffer_(buffer), channel_(std::move(channel)), session_(&session) {}

void Borrower::Wait() {
  if (reading_ || channel_->closed()) {
    return;
  }
  reading_ = true;
  channel_->WaitReadable([self = shared_from_this()](bool ok) {
    self->reading_ = false;
    if (self->channel_->closed()) {
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
  for (int i = 0; i < kBorrowerReads && session_ != nullptr; ++i) {
    const ssize_t got = channel_->Read(buffer_.data(), buffer_.size());
    if (got < 0) {
      Close();
      return;
    }
    if (got == 0) {
      break;
    }
    session_->FromBorrower({buffer_.data(), static_cast<size_t>(got)});
    if (session_ != nullptr && session_->writing_server()) {
      return;  // continues when the back end has taken it
    }
    if (channel_->drained()) {
      break;
    }
  }
  Wait();
}

void Borrower::Send(std::string_view bytes) {
  if (channel_->closed()) {
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
  if (channel_->closed()) {
    return;
  }
  channel_->Close();
  if (WireSession* const session = std::exchange(session_, nullptr)) {
    session->BorrowerGone(this);
  }
}

void LendTo(SessionHouse& house, Visitor visitor) {
  const auto found = house.loans.find(Sha256Of(visitor.token));
  if (found == house.loans.end()) {
    return visitor.Refuse(
        Status(Code::kPermissionDenied, "the statement that borrows the session is over")
            .SqlState("28000"));
  }
  WireSession* const session = found->second;
  house.loans.erase(found);  // it can be used only once
  const auto borrower =
      std::make_shared<Borrower>(*session, house.buffer, std::move(visitor.channel));
  borrower->Send(session->Greeting());
  session->Lend(borrower);
  borrower->Wait();
}

void CancelLoan(SessionHouse& house, uint32_t process, uint32_t key) {
  const auto found = house.sessions.find(process);
  if (found != house.sessions.end() && found->second->HasKey(key)) {
    found->second->CancelServer();
  }
}

// The session's side of a loan.

std::string WireSession::Greeting() const {
  std::string greeting;
  AppendAuthentication(greeting, Authentication::kOk);
  for (const auto& [name, value] : conversation_->parameters()) {
    AppendParameterStatus(greeting, name,
                          name == "client_encoding" ? conversation_->backend_encoding() : value);
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
  CancelBack([] {});
}

void WireSession::EndLoan() {
  house_.loans.erase(Sha256Of(token_));
  token_.clear();
  if (const std::shared_ptr<Borrower> borrower = std::exchange(borrower_, nullptr)) {
    borrower->Close();
  }
}

}  // namespace sluice::server::pgwire
