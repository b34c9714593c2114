#include "server/pgwire/ticket_desk.h"

#include <fmt/core.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "catalog/handed_connection.h"
#include "catalog/source_url.h"
#include "executor/processes/child_process.h"
#include "executor/processes/detached_process.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/cancel_request_internal.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/splice_internal.h"
#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr const char* kRole = "desk";
constexpr std::chrono::seconds kStartPatience(10);
// How long the process waits for new visitors when the gateway and all visitors are gone.
constexpr std::chrono::seconds kLinger(30);
constexpr std::chrono::seconds kLookEvery(2);
constexpr size_t kTicketBytes = size_t{64} << 10;

// Logs a visitor in with the keys of a ticket, and hands the connection over; where that cannot be,
// or is not asked for, what the two say goes through here. Lives in what it waits for: as long as
// the visitor is there.
class TicketLoginTask final : public std::enable_shared_from_this<TicketLoginTask> {
 public:
  // `presence`: is held as long as the visitor is there.
  TicketLoginTask(Visitor visitor, std::vector<char>& buffer, std::shared_ptr<const void> presence)
      : visitor_(std::move(visitor)), buffer_(buffer), presence_(std::move(presence)) {}

  void Start(BackendConnection& backend, ScramKeys keys) {
    backend.Start(visitor_.startup, {"", std::move(keys)},
                  [self = shared_from_this()](BackendConnection::Outcome outcome) {
                    self->Take(std::move(outcome));
                  });
  }

 private:
  void Take(BackendConnection::Outcome outcome) {
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
  std::vector<char>& buffer_;
  const std::shared_ptr<const void> presence_;
  std::unique_ptr<Channel> backend_;  // until it has been handed over
};

// The process behind a TicketDesk.
class DeskServer {
 public:
  DeskServer(std::string name, const std::string& key, Upstream upstream, TlsContext tls,
             int launcher)
      : upstream_(std::move(upstream)),
        tls_(std::move(tls)),
        tickets_(key),
        desk_(context_, buffer_, std::move(name),
              {[this](Visitor visitor) { Enter(std::move(visitor)); },
               [this](uint32_t process, uint32_t backend_key) {
                 CancelBackend(context_, upstream_, process, backend_key, [] {});
               }}),
        launcher_(context_, launcher),
        timer_(context_) {}

  Status Run(const std::stop_token& stop) {
    RETURN_IF_ERROR(desk_.Listen());
    const std::stop_callback ends(stop, [this] { context_.stop(); });
    boost::system::error_code error;
    launcher_.non_blocking(true, error);
    constexpr char kListening[] = "listening";
    launcher_.write_some(boost::asio::buffer(kListening, sizeof(kListening) - 1), error);
    // Nothing more is sent: the pipe becomes readable when the gateway is gone.
    launcher_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                         [this](const boost::system::error_code& /*error*/) { Linger(); });
    context_.run();
    return OkStatus();
  }

 private:
  void Enter(Visitor visitor) {
    Result<TicketLogin> login = tickets_.Read(visitor.token);
    if (!login.ok()) {
      return visitor.Refuse(login.status());
    }
    if (login->user != visitor.startup.Find("user") ||
        login->database != visitor.startup.Find("database")) {
      return visitor.Refuse(
          Status(Code::kPermissionDenied, "the ticket belongs to another user").SqlState("28000"));
    }
    const auto backend =
        std::make_shared<BackendConnection>(context_, upstream_, tls_.get(), buffer_);
    std::make_shared<TicketLoginTask>(std::move(visitor), buffer_, presence_)
        ->Start(*backend, std::move(login->keys));
  }

  void Linger() {
    const auto now = std::chrono::steady_clock::now();
    if (presence_.use_count() > 1 || !idle_since_.has_value()) {
      idle_since_ = now;
    }
    if (now - *idle_since_ >= kLinger) {
      context_.stop();
      return;
    }
    timer_.expires_after(kLookEvery);
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (!error) {
        Linger();
      }
    });
  }

  const Upstream upstream_;
  const TlsContext tls_;
  const TicketOffice tickets_;
  std::vector<char> buffer_ = std::vector<char>(kTicketBytes);
  boost::asio::io_context context_{1};
  Desk desk_;
  boost::asio::posix::stream_descriptor launcher_;
  boost::asio::steady_timer timer_;
  const std::shared_ptr<const void> presence_ = std::make_shared<int>();  // of the visitors
  std::optional<std::chrono::steady_clock::time_point> idle_since_;
};

}  // namespace

class TicketDesk::Process {
 public:
  explicit Process(executor::PacketSocket socket) : socket_(std::move(socket)) {}

  Status AwaitListening() const {
    executor::PollForReading({socket_.descriptor()},
                             std::chrono::steady_clock::now() + kStartPatience);
    ASSIGN_OR_RETURN(const std::optional<std::string> said, socket_.Receive());
    return said.has_value() ? OkStatus()
                            : Unavailable("the process that honours tickets does not begin");
  }
  bool Alive() const { return socket_.Receive().ok(); }

 private:
  const executor::PacketSocket socket_;
};

TicketDesk::TicketDesk(std::string source) : source_(std::move(source)) {
  link_.host = fmt::format("@sluice-desk-{}", RandomToken());
  link_.port = Desk::Port();
}

TicketDesk::~TicketDesk() = default;

Result<std::unique_ptr<TicketDesk>> TicketDesk::Start(const std::string& source) {
  // It logs in for others, and needs no password of the gateway.
  ASSIGN_OR_RETURN(catalog::SourceUrl address, catalog::ParseSourceUrl(source));
  std::unique_ptr<TicketDesk> desk(new TicketDesk(std::move(address.text)));
  RETURN_IF_ERROR(desk->StartProcess());
  return desk;
}

Status TicketDesk::StartProcess() {
  process_.reset();
  ASSIGN_OR_RETURN(executor::PacketSocket socket,
                   executor::StartDetached("", kRole, link_.host, tickets_.key() + source_, false));
  process_ = std::make_unique<Process>(std::move(socket));
  const Status listening = process_->AwaitListening();
  if (!listening.ok()) {
    process_.reset();
  }
  return listening;
}

Result<std::string> TicketDesk::Issue(const TicketLogin& login) {
  if (process_ == nullptr || !process_->Alive()) {
    RETURN_IF_ERROR(StartProcess());
  }
  return tickets_.Issue(login);
}

int RunTicketDesk() {
  return executor::RunDetached(
      kRole,
      [](const executor::InheritedConfig& inherited, int launcher,
         const std::stop_token& stop) -> Result<int> {
        const std::string source = inherited.secret.substr(TicketOffice::kKeyBytes);
        ASSIGN_OR_RETURN(Upstream upstream, UpstreamOf(source));
        ASSIGN_OR_RETURN(TlsContext tls, ClientTls(upstream));
        DeskServer server(inherited.config, inherited.secret.substr(0, TicketOffice::kKeyBytes),
                          std::move(upstream), std::move(tls), launcher);
        RETURN_IF_ERROR(server.Run(stop));
        return 0;
      });
}

}  // namespace sluice::server::pgwire
