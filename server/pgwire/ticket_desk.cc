#include "server/pgwire/ticket_desk.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "executor/processes/child_process.h"
#include "executor/processes/detached_process.h"
#include "server/pgwire/backend_connection_internal.h"
#include "server/pgwire/desk_internal.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/splice_internal.h"
#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

constexpr const char* kRole = "desk";
constexpr std::chrono::seconds kStartPatience(10);
// How long the process waits for somebody to come when the gateway and everybody else have gone.
constexpr std::chrono::seconds kLinger(30);
constexpr std::chrono::seconds kLookEvery(2);
constexpr size_t kTicketBytes = size_t{64} << 10;

// Logs a visitor in with the keys of a ticket. Lives in what it waits for.
class TicketLoginTask final : public std::enable_shared_from_this<TicketLoginTask> {
 public:
  using LoggedIn = std::function<void(std::shared_ptr<Splice>)>;
  TicketLoginTask(Visitor visitor, std::vector<char>& buffer, LoggedIn then)
      : visitor_(std::move(visitor)), buffer_(buffer), then_(std::move(then)) {}

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
    AppendKeyData(greeting, outcome.login->process(), outcome.login->key());
    AppendReady(greeting, 'I');
    if (!visitor_.channel->Write(greeting)) {
      return visitor_.channel->Close();
    }
    auto splice =
        std::make_shared<Splice>(std::move(visitor_.channel), std::move(outcome.channel), buffer_);
    splice->Start();
    then_(std::move(splice));
  }

  Visitor visitor_;
  std::vector<char>& buffer_;
  const LoggedIn then_;
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
                 CancelBackend(context_, upstream_, process, backend_key);
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
    // Nothing more is said: what can be read there is that the gateway has gone.
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
          Status(Code::kPermissionDenied, "the ticket is somebody else's").SqlState("28000"));
    }
    const auto backend =
        std::make_shared<BackendConnection>(context_, upstream_, tls_.get(), buffer_);
    std::make_shared<TicketLoginTask>(
        std::move(visitor), buffer_,
        [this](std::shared_ptr<Splice> splice) { splices_.emplace_back(std::move(splice)); })
        ->Start(*backend, std::move(login->keys));
  }

  void Linger() {
    const auto now = std::chrono::steady_clock::now();
    splices_.erase(std::remove_if(splices_.begin(), splices_.end(),
                                  [](const std::weak_ptr<Splice>& each) { return each.expired(); }),
                   splices_.end());
    if (!splices_.empty() || !idle_since_.has_value()) {
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
  std::vector<std::weak_ptr<Splice>> splices_;
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
  std::unique_ptr<TicketDesk> desk(new TicketDesk(source));
  RETURN_IF_ERROR(desk->StartProcess());
  return desk;
}

Status TicketDesk::StartProcess() {
  process_.reset();
  ASSIGN_OR_RETURN(executor::PacketSocket socket,
                   executor::StartDetached("", kRole, link_.host, tickets_.key() + source_));
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
