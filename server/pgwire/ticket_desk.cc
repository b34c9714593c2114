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

#include "catalog/source_url.h"
#include "executor/processes/child_process.h"
#include "executor/processes/detached_process.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/cancel_request_internal.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/tls_context_internal.h"
#include "server/pgwire/visitor_login_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr const char* kRole = "desk";
constexpr std::chrono::seconds kStartPatience(10);
// How long the process waits for new visitors when the gateway and all visitors are gone.
constexpr std::chrono::seconds kLinger(30);
constexpr std::chrono::seconds kLookEvery(2);

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
    LogVisitorIn(std::move(visitor), std::move(login->keys),
                 std::make_shared<BackendConnection>(context_, upstream_, tls_.get(), buffer_),
                 buffer_, presence_);
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
  std::vector<char> buffer_ = std::vector<char>(kDeskBufferBytes);
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

TicketDesk::TicketDesk(std::string source, std::shared_ptr<const TicketOffice> tickets)
    : source_(std::move(source)), tickets_(std::move(tickets)) {
  link_.host = fmt::format("@sluice-desk-{}", RandomToken());
  link_.port = Desk::Port();
}

TicketDesk::~TicketDesk() = default;

Result<std::unique_ptr<TicketDesk>> TicketDesk::Start(const std::string& source,
                                                      std::shared_ptr<const TicketOffice> tickets) {
  // It logs in for others, and needs no password of the gateway.
  ASSIGN_OR_RETURN(catalog::SourceUrl address, catalog::ParseSourceUrl(source));
  std::unique_ptr<TicketDesk> desk(new TicketDesk(std::move(address.text), std::move(tickets)));
  RETURN_IF_ERROR(desk->StartProcess());
  return desk;
}

Status TicketDesk::StartProcess() {
  process_.reset();
  ASSIGN_OR_RETURN(executor::PacketSocket socket,
                   executor::StartDetached("", "sluice: desk", kRole, link_.host,
                                           tickets_->key() + source_, false));
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
  return tickets_->Issue(login);
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
