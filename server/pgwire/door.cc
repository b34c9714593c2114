#include "server/pgwire/door.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <thread>
#include <utility>

#include "base/guarded.h"
#include "base/log.h"
#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/session_internal.h"

namespace sluice::server::pgwire {
namespace {

using boost::asio::ip::tcp;

// What one read may bring; all sessions share it.
constexpr size_t kReadBytes = size_t{64} << 10;
// Clients that have connected and are not taken yet.
constexpr int kBacklog = 1024;
// After an accept that failed (no descriptors left), so that it does not spin.
constexpr std::chrono::milliseconds kAcceptPause(100);

struct TlsFree {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using TlsContext = std::unique_ptr<SSL_CTX, TlsFree>;

std::string TlsError() {
  char text[256] = "unknown error";
  ERR_error_string_n(ERR_get_error(), text, sizeof(text));
  return text;
}

Result<TlsContext> ServerTls(const Door::Options& options) {
  if (options.tls_cert.empty()) {
    return TlsContext();
  }
  TlsContext context(SSL_CTX_new(TLS_server_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.tls_cert.c_str()) != 1 ||
      SSL_CTX_use_PrivateKey_file(context.get(), options.tls_key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return InvalidArgument(fmt::format("cannot use {} and {}: {}", options.tls_cert,
                                       options.tls_key, TlsError()))
        .Hint("a certificate and its key are expected there, as PEM files");
  }
  return context;
}

Result<TlsContext> ClientTls(const Upstream& upstream) {
  TlsContext context(SSL_CTX_new(TLS_client_method()));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  const bool verified = upstream.tls_mode == "verify-ca" || upstream.tls_mode == "verify-full";
  if (verified) {
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const bool loaded =
        upstream.tls_root.empty()
            ? SSL_CTX_set_default_verify_paths(context.get()) == 1
            : SSL_CTX_load_verify_locations(context.get(), upstream.tls_root.c_str(), nullptr) == 1;
    if (!loaded) {
      return InvalidArgument(
          fmt::format("cannot read the certificates of {}: {}", upstream.tls_root, TlsError()));
    }
  }
  return context;
}

class WireDoor final : public Door {
 public:
  WireDoor(StatementService& service, Upstream upstream, bool ask_password, TlsContext server_tls,
           TlsContext client_tls)
      : server_tls_(std::move(server_tls)),
        client_tls_(std::move(client_tls)),
        house_{.context = context_,
               .service = service,
               .upstream = std::move(upstream),
               .ask_password = ask_password,
               .server_tls = server_tls_.get(),
               .client_tls = client_tls_.get(),
               .buffer = std::vector<char>(kReadBytes)},
        loans_(house_),
        acceptor_(context_),
        pause_(context_) {}

  ~WireDoor() override { Shutdown(); }

  Status Listen(const std::string& address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon + 1 == address.size()) {
      return InvalidArgument(fmt::format("pg must be HOST:PORT, not '{}'", address));
    }
    std::string host = address.substr(0, colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    boost::system::error_code error;
    tcp::resolver resolver(context_);
    const auto found =
        resolver.resolve(host, address.substr(colon + 1), tcp::resolver::passive, error);
    if (!error && !found.empty()) {
      const tcp::endpoint endpoint = found.begin()->endpoint();
      acceptor_.open(endpoint.protocol(), error);
      if (!error) {
        acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
        acceptor_.bind(endpoint, error);
      }
      if (!error) {
        acceptor_.listen(kBacklog, error);
      }
    }
    if (error || !acceptor_.is_open()) {
      return Unavailable(fmt::format("cannot listen on {}: {}", address, error.message()))
          .Hint("is the port taken?");
    }
    address_ = fmt::format("{}:{}", address.substr(0, colon), acceptor_.local_endpoint().port());
    RETURN_IF_ERROR(loans_.Listen());
    Accept();
    thread_ = std::thread([this] { Serve(); });
    return OkStatus();
  }

  const std::string& address() const override { return address_; }

  void Shutdown() override {
    if (!thread_.joinable()) {
      return;
    }
    boost::asio::post(context_, [this] {
      boost::system::error_code ignored;
      acceptor_.close(ignored);
      loans_.Close();
      pause_.cancel();
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
      // What escapes from one session's work must not cost the others theirs.
      [[maybe_unused]] const Status served =
          Guarded("serving the PostgreSQL door", [this] { context_.run(); });
    }
  }

  void Accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (!acceptor_.is_open()) {
        return;
      }
      if (error) {
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const boost::system::error_code& ended) {
          if (!ended) {
            Accept();
          }
        });
        return;
      }
      boost::system::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      socket.set_option(boost::asio::socket_base::keep_alive(true), ignored);
      const boost::asio::ip::address address = socket.remote_endpoint(ignored).address();
      std::make_shared<WireSession>(house_, socket.release(ignored), address.is_loopback(),
                                    address.to_string(ignored))
          ->Start();
      Accept();
    });
  }

  const TlsContext server_tls_;
  const TlsContext client_tls_;
  SessionHouse house_;  // outlives the sessions, which live in what the context waits for
  boost::asio::io_context context_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{
      context_.get_executor()};
  LoanDesk loans_;
  tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  std::string address_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<Door>> Door::Start(const Options& options, StatementService& service) {
  ASSIGN_OR_RETURN(Upstream upstream, UpstreamOf(options.source));
  ASSIGN_OR_RETURN(TlsContext server_tls, ServerTls(options));
  ASSIGN_OR_RETURN(TlsContext client_tls, ClientTls(upstream));
  auto door = std::make_unique<WireDoor>(service, std::move(upstream), options.ask_password,
                                         std::move(server_tls), std::move(client_tls));
  RETURN_IF_ERROR(door->Listen(options.address));
  return std::unique_ptr<Door>(std::move(door));
}

}  // namespace sluice::server::pgwire
