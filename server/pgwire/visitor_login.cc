#include <string>
#include <utility>

#include "catalog/handed_connection.h"
#include "server/pgwire/splice_internal.h"
#include "server/pgwire/visitor_login_internal.h"

namespace sluice::server::pgwire {
namespace {

// Logs a visitor in with keys, and hands the connection over; where that cannot be,
// or is not asked for, what the two say goes through here. Lives in what it waits for: as long as
// the visitor is there.
class VisitorLogin final : public std::enable_shared_from_this<VisitorLogin> {
 public:
  // `presence`: is held as long as the visitor is there.
  VisitorLogin(Visitor visitor, std::vector<char>& buffer, std::shared_ptr<const void> presence)
      : visitor_(std::move(visitor)), buffer_(buffer), presence_(std::move(presence)) {}

  void Start(const std::shared_ptr<BackendConnection>& backend, ScramKeys keys) {
    logging_in_ = backend;
    AwaitLeaving();
    backend->Start(visitor_.startup, {"", std::move(keys)},
                   [self = shared_from_this()](BackendConnection::Outcome outcome) {
                     self->Take(std::move(outcome));
                   });
  }

 private:
  // A server that hangs would keep the login of a visitor who has left.
  void AwaitLeaving() {
    visitor_.channel->WaitReadable([weak = weak_from_this()](bool /*ok*/) {
      const auto self = weak.lock();
      const auto login = self == nullptr ? nullptr : self->logging_in_.lock();
      if (login == nullptr) {
        return;
      }
      if (self->visitor_.channel->Read(self->buffer_.data(), self->buffer_.size()) == 0) {
        return self->AwaitLeaving();
      }
      login->Close();  // before the greeting, a visitor who stays says nothing
    });
  }

  void Take(BackendConnection::Outcome outcome) {
    logging_in_.reset();
    if (!outcome.status.ok()) {
      return visitor_.Refuse(outcome.status);
    }
    if (!outcome.refusal.empty()) {
      visitor_.channel->Write(outcome.refusal);
      return visitor_.channel->Close();
    }
    std::string greeting;
    AppendAuthentication(greeting, Authentication::kOk);
    greeting += outcome.login->greeting();
    const bool hands_over = !outcome.channel->tls();
    if (hands_over) {
      AppendParameterStatus(greeting, catalog::kHandsOverParameter, "on");
    }
    AppendKeyData(greeting, outcome.login->process(), outcome.login->key());
    AppendReady(greeting, 'I');
    if (!visitor_.channel->Write(greeting)) {
      return visitor_.channel->Close();
    }
    backend_ = std::move(outcome.channel);
    hands_over ? AwaitWish() : PassOn();
  }

  void AwaitWish() {
    visitor_.channel->WaitReadable([self = shared_from_this()](bool ok) {
      if (ok) {
        self->TakeWish();
      }
    });
  }

  void TakeWish() {
    const ssize_t got = visitor_.channel->Read(buffer_.data(), buffer_.size());
    if (got < 0 || (got > 0 && backend_ == nullptr)) {
      return;  // the visitor has gone, or says to us what is for the server
    }
    const std::string_view said(buffer_.data(), static_cast<size_t>(got));
    if (!said.empty() && said != catalog::kHandOverMessage) {
      return backend_->Write(said) ? PassOn() : void();
    }
    if (!said.empty()) {
      const std::unique_ptr<Channel> backend = std::move(backend_);
      if (!catalog::SendDescriptor(visitor_.channel->native_handle(), backend->native_handle())
               .ok()) {
        return;
      }
    }
    AwaitWish();
  }

  void PassOn() {
    std::make_shared<Splice>(std::move(visitor_.channel), std::move(backend_), buffer_, presence_)
        ->Start();
  }

  Visitor visitor_;
  std::weak_ptr<BackendConnection> logging_in_;
  std::vector<char>& buffer_;
  const std::shared_ptr<const void> presence_;
  std::unique_ptr<Channel> backend_;  // until it has been handed over
};

}  // namespace

void LogVisitorIn(Visitor visitor, ScramKeys keys, std::shared_ptr<BackendConnection> backend,
                  std::vector<char>& buffer, std::shared_ptr<const void> presence) {
  std::make_shared<VisitorLogin>(std::move(visitor), buffer, std::move(presence))
      ->Start(backend, std::move(keys));
}

}  // namespace sluice::server::pgwire
