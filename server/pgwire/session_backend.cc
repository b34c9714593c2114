#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "server/pgwire/borrower_internal.h"
#include "server/pgwire/certificate.h"
#include "server/pgwire/random_internal.h"
#include "server/pgwire/session_internal.h"

// A session's back end: how it is reached and logged in to.
namespace sluice::server::pgwire {
namespace {

using boost::asio::ip::tcp;

constexpr int kReadsOfServerInARow = 8;

Status CannotConnect(const Upstream& upstream, std::string_view why) {
  return Status(Code::kUnavailable, fmt::format("cannot connect to PostgreSQL at {}:{}: {}",
                                                upstream.host, upstream.port, why))
      .SqlState("08001");
}

int SocketTo(const std::string& folder, const std::string& port, sockaddr_un* address) {
  const std::string path = folder + "/.s.PGSQL." + port;
  if (path.size() >= sizeof(address->sun_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, path.c_str(), path.size() + 1);
  return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

// Calls `then` with a connected socket, or with -1.
void ConnectUnix(const Upstream& upstream, const std::function<void(int)>& then) {
  sockaddr_un address = {};
  const int descriptor = SocketTo(upstream.host, upstream.port, &address);
  if (descriptor >= 0 &&
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return then(-1);
  }
  then(descriptor);
}

// What SCRAM binds to; nullopt: the certificate has nothing for it.
std::optional<std::string> PeerEndPoint(SSL* ssl) {
  X509* const certificate = SSL_get1_peer_certificate(ssl);
  if (certificate == nullptr) {
    return std::nullopt;
  }
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  std::optional<std::string> end_point;
  if (size > 0) {
    const std::string bytes(der, der + size);
    const Result<std::string> hash = TlsServerEndPointOfDer(bytes);
    end_point = hash.ok() ? std::optional(*hash) : std::nullopt;
    OPENSSL_free(der);
  }
  X509_free(certificate);
  return end_point;
}

}  // namespace

void WireSession::Connect() {
  state_ = State::kConnecting;
  if (house_.upstream.local_socket()) {
    ConnectUnix(house_.upstream, [this](int descriptor) {
      if (descriptor < 0) {
        Refuse(CannotConnect(house_.upstream, std::strerror(errno)));
      } else {
        Connected(descriptor);
      }
    });
    return;
  }
  resolver_.async_resolve(house_.upstream.host, house_.upstream.port,
                          [self = shared_from_this()](const boost::system::error_code& error,
                                                      const tcp::resolver::results_type& found) {
                            if (self->state_ == State::kClosed) {
                              return;
                            }
                            if (error) {
                              self->Refuse(CannotConnect(self->house_.upstream, error.message()));
                              return;
                            }
                            std::vector<tcp::endpoint> addresses;
                            for (const auto& entry : found) {
                              addresses.insert(addresses.begin(),
                                               entry.endpoint());  // the last one is tried first
                            }
                            self->ConnectTo(std::move(addresses));
                          });
}

void WireSession::ConnectTo(std::vector<tcp::endpoint> addresses) {
  const tcp::endpoint address = addresses.back();
  addresses.pop_back();
  auto socket = std::make_shared<tcp::socket>(house_.context);
  socket->async_connect(
      address, [self = shared_from_this(), socket,
                addresses = std::move(addresses)](const boost::system::error_code& error) mutable {
        if (self->state_ == State::kClosed) {
          return;
        }
        if (error && !addresses.empty()) {
          self->ConnectTo(std::move(addresses));
          return;
        }
        if (error) {
          self->Refuse(CannotConnect(self->house_.upstream, error.message()));
          return;
        }
        boost::system::error_code ignored;
        socket->set_option(tcp::no_delay(true), ignored);
        socket->set_option(boost::asio::socket_base::keep_alive(true), ignored);
        self->Connected(socket->release(ignored));
      });
}

void WireSession::Connected(int descriptor) {
  server_ = std::make_unique<Channel>(house_.context, descriptor);
  const Upstream& upstream = house_.upstream;
  const bool wanted = !upstream.tls_mode.empty()
                          ? upstream.tls_mode != "disable" && upstream.tls_mode != "allow"
                          : !IsLoopback(upstream.host);
  if (!wanted || upstream.local_socket() || house_.client_tls == nullptr) {
    BeginLogin();
    return;
  }
  std::string question;
  AppendUint32(question, 2 * kLengthBytes);
  AppendUint32(question, kTlsCode);
  state_ = State::kTlsAnswer;
  ToServer(question);
  WaitForServer();
}

void WireSession::BeginLogin() {
  state_ = State::kLogin;
  const bool private_line =
      server_->tls() || house_.upstream.local_socket() || IsLoopback(house_.upstream.host);
  backend_login_ =
      std::make_unique<BackendLogin>(startup_, login_.password, private_line, RandomToken());
  ToServer(backend_login_->Begin());
  WaitForServer();
}

void WireSession::WaitForServer() {
  if (reading_server_ || state_ == State::kClosed) {
    return;
  }
  reading_server_ = true;
  server_->WaitReadable([self = shared_from_this()](bool ok) {
    self->reading_server_ = false;
    if (self->state_ == State::kClosed) {
      return;
    }
    if (!ok) {
      self->Close();
      return;
    }
    self->ReadServer();
  });
}

void WireSession::ReadServer() {
  for (int i = 0; i < kReadsOfServerInARow && state_ != State::kClosed; ++i) {
    // Whose TLS it will be is not known before this one byte has come.
    const size_t most = state_ == State::kTlsAnswer ? 1 : house_.buffer.size();
    const ssize_t got = server_->Read(house_.buffer.data(), most);
    if (got < 0) {
      if (state_ == State::kTalking) {
        Close();
      } else {
        Refuse(CannotConnect(house_.upstream, "the server closed the connection"));
      }
      return;
    }
    if (got == 0) {
      break;
    }
    TakeFromServer({house_.buffer.data(), static_cast<size_t>(got)});
    if (writing_client_ || (borrower_ != nullptr && borrower_->writing())) {
      return;  // goes on when whom it is for has taken it
    }
  }
  WaitForServer();
}

void WireSession::TakeFromServer(std::string_view bytes) {
  if (state_ == State::kTalking) {
    conversation_->FromServer(bytes);
    WaitForClient();
    return;
  }
  if (state_ == State::kTlsAnswer) {
    if (bytes == "S") {
      const std::string& mode = house_.upstream.tls_mode;
      server_->StartTls(house_.client_tls, false,
                        mode == "verify-full" ? house_.upstream.host : std::string());
      BeginLogin();
    } else if (house_.upstream.tls_mode.empty() || house_.upstream.tls_mode == "prefer") {
      BeginLogin();
    } else {
      Refuse(CannotConnect(house_.upstream,
                           "the server does not support TLS, and sslmode asks "
                           "for it"));
    }
    return;
  }
  if (server_->tls() && !bound_) {
    bound_ = true;
    if (std::optional<std::string> channel = PeerEndPoint(server_->ssl())) {
      backend_login_->BindTo(*std::move(channel));
    }
  }
  const Result<std::string> answer = backend_login_->FromServer(bytes);
  if (!answer.ok()) {
    Refuse(answer.status());
    return;
  }
  ToServer(*answer);
  switch (backend_login_->state()) {
    case BackendLogin::State::kUnderWay:
      break;
    case BackendLogin::State::kRefused:
      if (ReadError(std::string_view(backend_login_->refusal()).substr(kHeaderBytes))
              .sqlstate()
              .starts_with("28")) {
        house_.throttle.Failed(login_.address, login_.user, house_.clock.Now());
      }
      RefuseInWords(backend_login_->refusal());
      break;
    case BackendLogin::State::kReady:
      if (house_.ask_password && !backend_login_->asked()) {
        // "trust", "peer" or "ident" in its pg_hba.conf: it took our word for who the user is.
        Refuse(Status(Code::kPermissionDenied,
                      fmt::format("PostgreSQL let role \"{}\" in without asking for the password, "
                                  "so that nobody has checked it",
                                  login_.user))
                   .SqlState("28000")
                   .Hint("let pg_hba.conf ask for passwords (scram-sha-256) where the gateway "
                         "connects from, or start it with --auth trust"));
        break;
      }
      house_.throttle.Succeeded(login_.user);
      Ready();
      break;
  }
}

void WireSession::ToServer(std::string_view bytes) {
  if (state_ == State::kClosed || bytes.empty()) {
    return;
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

// On a connection of its own, as the protocol wants it.
void WireSession::ForwardCancel(uint32_t process, uint32_t key) {
  auto request = std::make_shared<std::string>();
  AppendCancelRequest(*request, process, key);
  if (house_.upstream.local_socket()) {
    ConnectUnix(house_.upstream, [&request](int descriptor) {
      if (descriptor >= 0) {
        static_cast<void>(send(descriptor, request->data(), request->size(), MSG_NOSIGNAL));
        close(descriptor);
      }
    });
    return;
  }
  auto resolver = std::make_shared<tcp::resolver>(house_.context);
  auto socket = std::make_shared<tcp::socket>(house_.context);
  resolver->async_resolve(house_.upstream.host, house_.upstream.port,
                          [resolver, socket, request](const boost::system::error_code& error,
                                                      const tcp::resolver::results_type& found) {
                            if (error || found.empty()) {
                              return;
                            }
                            socket->async_connect(
                                *found.begin(),
                                [socket, request](const boost::system::error_code& failed) {
                                  boost::system::error_code ignored;
                                  if (!failed) {
                                    socket->send(boost::asio::buffer(*request), 0, ignored);
                                  }
                                });
                          });
}

}  // namespace sluice::server::pgwire
