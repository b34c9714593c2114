#include "server/pgwire/door.h"

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/listener_internal.h"
#include "server/pgwire/login_work.h"
#include "server/pgwire/password_file.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"
#include "server/pgwire/tls_context_internal.h"

namespace sluice::server::pgwire {
namespace {

// Size of one read; all sessions share the buffer.
constexpr size_t kReadBytes = size_t{64} << 10;
// A session waits for one at a time, and there are fewer sessions than descriptors.
constexpr size_t kMostRoutes = size_t{1} << 20;

class WireDoor final : public Door {
 public:
  // What a door consists of, apart from its sockets.
  struct Parts {
    StatementService& service;
    Shared shared;
    Upstream upstream;
    ClientLogin client_login;
    std::unique_ptr<Verifiers> verifiers;
    std::unique_ptr<ServerCertificate> certificate;
    TlsContext client_tls;
    std::unique_ptr<TicketDesk> tickets;  // with a server's verifiers
    std::string embedded;                 // sqlite:PATH, instead of a server
    std::string password_file;            // whose users are its roles; "": there are none
    std::function<Status()> admits;
    size_t message_bytes = 0;
  };
  explicit WireDoor(Parts parts)
      : certificate_(std::move(parts.certificate)),
        client_tls_(std::move(parts.client_tls)),
        tickets_(std::move(parts.tickets)),
        house_{.context = context_,
               .service = parts.service,
               .throttle = parts.shared.throttle,
               .roles = parts.shared.roles,
               .audit = parts.shared.audit,
               .upstream = std::move(parts.upstream),
               .client_login = parts.client_login,
               .verifiers = parts.verifiers.get(),
               .certificate = *certificate_,
               .client_tls = client_tls_.get(),
               .buffer = std::vector<char>(kReadBytes),
               .routes = routes_,
               .login_work = login_work_,
               .admits = std::move(parts.admits),
               .role_bytes = RoleBytes(parts.message_bytes),
               .tickets = tickets_.get()},
        loans_(context_, house_.buffer, fmt::format("@sluice-{}-{}", getpid(), RandomToken()),
               {[this](Visitor visitor) { LendTo(house_, std::move(visitor)); },
                [this](uint32_t process, uint32_t key) { CancelLoan(house_, process, key); }}),
        verifiers_(std::move(parts.verifiers)),
        embedded_(parts.embedded.empty()
                      ? nullptr
                      : std::make_unique<EmbeddedDatabase>(
                            context_, parts.embedded, parts.password_file, parts.shared.audit)) {
    house_.embedded = embedded_.get();
  }

  ~WireDoor() override { Shutdown(); }

  Status Listen(const std::string& addresses) {
    for (size_t at = 0; at <= addresses.size();) {
      const size_t comma = std::min(addresses.find(',', at), addresses.size());
      const std::string address = addresses.substr(at, comma - at);
      ASSIGN_OR_RETURN(std::unique_ptr<Listener> listener,
                       Listener::Open(context_, address, [this](Listener::Client client) {
                         std::make_shared<WireSession>(house_, client.descriptor, client.local,
                                                       std::move(client.address))
                             ->Start();
                       }));
      address_ += (address_.empty() ? "" : ",") + listener->address();
      listeners_.push_back(std::move(listener));
      at = comma + 1;
    }
    RETURN_IF_ERROR(loans_.Listen());
    house_.link.host = loans_.name();
    house_.link.port = Desk::Port();
    thread_ = std::thread([this] { Serve(); });
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

  void Shutdown() override {
    if (!thread_.joinable()) {
      return;
    }
    ReadySockets::Post(context_, [this] {
      listeners_.clear();
      loans_.Close();
      const std::map<uint32_t, WireSession*> sessions = house_.sessions;
      for (const auto& [process, session] : sessions) {
        session->shared_from_this();
        session->Shutdown();
      }
      work_.reset();
      context_.stop();
    });
    thread_.join();
  }

 private:
  void Serve() {
    pthread_setname_np(pthread_self(), "pg door");
    while (!context_.stopped()) {
      // An exception in one session's work must not end the others.
      [[maybe_unused]] const Status served =
          Guarded("serving the PostgreSQL door", [this] { context_.run(); });
    }
  }

  const std::unique_ptr<ServerCertificate> certificate_;
  const TlsContext client_tls_;
  const std::unique_ptr<TicketDesk> tickets_;
  SessionHouse house_;  // outlives the sessions, which what waits in the context keeps alive
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  WorkQueue routes_{"routes of statements", kMostRoutes,
                    [](const Status& error) { log::Warn("pg door: {}", error.ToString()); }};
  LoginWork login_work_;
  Desk loans_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::string address_;
  const std::unique_ptr<Verifiers> verifiers_;  // its thread posts to the context
  const std::unique_ptr<EmbeddedDatabase> embedded_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Door>> Door::Start(const Options& options, StatementService& service,
                                          const Shared& shared) {
  const bool embedded = options.source.starts_with("sqlite:");
  Upstream upstream;
  if (!embedded) {
    ASSIGN_OR_RETURN(upstream, UpstreamOf(options.source));
  }
  ASSIGN_OR_RETURN(auto certificate, ServerCertificate::Read(options.tls_cert, options.tls_key));
  ASSIGN_OR_RETURN(TlsContext client_tls, ClientTls(upstream));
  std::unique_ptr<Verifiers> verifiers;
  std::unique_ptr<TicketDesk> tickets;
  if (options.client_login == ClientLogin::kScram && embedded) {
    ASSIGN_OR_RETURN(verifiers, OpenPasswordFile(options.password_file));
  } else if (options.client_login == ClientLogin::kScram) {
    ASSIGN_OR_RETURN(
        verifiers, Verifiers::Open(options.verifiers.empty() ? options.source : options.verifiers));
    ASSIGN_OR_RETURN(tickets, TicketDesk::Start(options.source, options.tickets));
  }
  auto door = std::make_unique<WireDoor>(WireDoor::Parts{
      service, shared, std::move(upstream), options.client_login, std::move(verifiers),
      std::move(certificate), std::move(client_tls), std::move(tickets),
      embedded ? options.source : std::string(),
      options.client_login == ClientLogin::kScram ? options.password_file : std::string(),
      options.admits, options.message_bytes});
  RETURN_IF_ERROR(door->Listen(options.address));
  return std::unique_ptr<Door>(std::move(door));
}

}  // namespace sluice::server::pgwire
