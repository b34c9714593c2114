#include "server/pgwire/backend_connection_internal.h"

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

#include "server/pgwire/random_internal.h"

namespace sluice::server::pgwire {
namespace {

using boost::asio::ip::tcp;

int UnixSocketFor(const std::string& path, sockaddr_un* address) {
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
  const int descriptor = UnixSocketFor(upstream.SocketPath(), &address);
  if (descriptor >= 0 &&
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    close(descriptor);
    errno = error;
    return then(-1);
  }
  then(descriptor);
}

// The channel binding for SCRAM; nullopt: the certificate offers none.
std::optional<std::string> PeerEndPoint(SSL* ssl) {
  X509* const certificate = SSL_get1_peer_certificate(ssl);
  std::optional<std::string> end_point = CertificateEndPoint(certificate);
  X509_free(certificate);
  return end_point;
}

}  // namespace

BackendConnection::BackendConnection(boost::asio::io_context& context, const Upstream& upstream,
                                     SSL_CTX* tls, std::vector<char>& buffer, LoginWork* work)
    : context_(context),
      upstream_(upstream),
      tls_(tls),
      buffer_(buffer),
      work_(work),
      resolver_(context) {}

void BackendConnection::Start(StartupMessage startup, BackendSecret secret, Then then) {
  startup_ = std::move(startup);
  secret_ = std::move(secret);
  then_ = std::move(then);
  Dial();
}

void BackendConnection::Dial() {
  if (upstream_.local_socket()) {
    ConnectUnix(upstream_, [this](int descriptor) {
      if (descriptor < 0) {
        CannotConnect(std::strerror(errno));
      } else {
        Connected(descriptor);
      }
    });
    return;
  }
  resolver_.async_resolve(
      upstream_.place(), upstream_.port,
      [self = shared_from_this(), awaited = ReadySockets::AwaitAsio(context_)](
          const boost::system::error_code& error, const tcp::resolver::results_type& found) {
        if (self->then_ == nullptr) {
          return;
        }
        if (error) {
          self->CannotConnect(error.message());
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

void BackendConnection::ConnectTo(std::vector<tcp::endpoint> addresses) {
  const tcp::endpoint address = addresses.back();
  addresses.pop_back();
  auto socket = std::make_shared<tcp::socket>(context_);
  socket->async_connect(
      address, [self = shared_from_this(), socket, awaited = ReadySockets::AwaitAsio(context_),
                addresses = std::move(addresses)](const boost::system::error_code& error) mutable {
        if (self->then_ == nullptr) {
          return;
        }
        if (error && !addresses.empty()) {
          self->ConnectTo(std::move(addresses));
          return;
        }
        if (error) {
          self->CannotConnect(error.message());
          return;
        }
        boost::system::error_code ignored;
        socket->set_option(tcp::no_delay(true), ignored);
        NoticeVanishedPeer(socket->native_handle());
        self->Connected(socket->release(ignored));
      });
}

void BackendConnection::Connected(int descriptor) {
  channel_ = std::make_unique<Channel>(context_, descriptor);
  const bool wanted = !upstream_.tls_mode.empty()
                          ? upstream_.tls_mode != "disable" && upstream_.tls_mode != "allow"
                          : !IsLoopback(upstream_.place());
  if (!wanted || upstream_.local_socket() || tls_ == nullptr) {
    LogIn();
    return;
  }
  std::string question;
  AppendUint32(question, 2 * kLengthBytes);
  AppendUint32(question, kTlsCode);
  asked_for_tls_ = true;
  Send(question);
  WaitToRead();
}

void BackendConnection::LogIn() {
  const bool private_line =
      channel_->tls() || upstream_.local_socket() || IsLoopback(upstream_.place());
  login_ = std::make_unique<BackendLogin>(startup_, secret_, private_line, RandomToken());
  Send(login_->Begin());
  WaitToRead();
}

void BackendConnection::WaitToRead() {
  if (then_ == nullptr) {
    return;
  }
  channel_->WaitReadable([self = shared_from_this()](bool ok) {
    if (self->then_ == nullptr) {
      return;
    }
    if (!ok) {
      self->CannotConnect("the server closed the connection");
      return;
    }
    self->Read();
  });
}

void BackendConnection::Read() {
  // Until this one byte has come, it is not known whether TLS follows.
  const bool tls_answer = asked_for_tls_;
  const ssize_t got = channel_->Read(buffer_.data(), tls_answer ? 1 : buffer_.size());
  if (got < 0) {
    CannotConnect(WhyClosed());
    return;
  }
  if (got > 0) {
    const std::string_view bytes(buffer_.data(), static_cast<size_t>(got));
    if (tls_answer) {
      TakeTlsAnswer(bytes);
      return;  // which waits for more
    }
    if (!Take(bytes)) {
      return;
    }
  }
  WaitToRead();
}

void BackendConnection::TakeTlsAnswer(std::string_view bytes) {
  asked_for_tls_ = false;
  if (bytes == "S") {
    channel_->StartTls(tls_, false,
                       upstream_.tls_mode == "verify-full" ? upstream_.host : std::string());
    LogIn();
  } else if (upstream_.tls_mode.empty() || upstream_.tls_mode == "prefer") {
    LogIn();
  } else {
    CannotConnect("the server does not support TLS, and sslmode asks for it");
  }
}

// False: nothing more is to be read here.
bool BackendConnection::Take(std::string_view bytes) {
  if (channel_->tls() && !bound_) {
    bound_ = true;
    if (std::optional<std::string> channel = PeerEndPoint(channel_->ssl())) {
      login_->BindTo(*std::move(channel));
    }
  }
  const Result<std::string> answer = login_->FromServer(bytes);
  if (!answer.ok()) {
    End({answer.status(), ""});
    return false;
  }
  switch (login_->state()) {
    case BackendLogin::State::kUnderWay:
      Send(*answer);
      return true;
    case BackendLogin::State::kProving:
      Prove();
      return false;
    case BackendLogin::State::kRefused:
      End({OkStatus(), login_->refusal()});
      return false;
    case BackendLogin::State::kMisled:
      startup_ = login_->other_startup();
      channel_->Close();
      login_.reset();
      bound_ = false;
      Dial();
      return false;
    case BackendLogin::State::kReady:
      End({OkStatus(), "", std::move(channel_), std::move(login_)});
      return false;
  }
  return false;
}

void BackendConnection::Prove() {
  if (work_ == nullptr) {
    return Proved(login_->Prove());
  }
  auto prove = [self = shared_from_this()]() mutable {
    Result<std::string> answer = self->login_->Prove();
    boost::asio::io_context& context = self->context_;
    // The connection may end with the last one that knows it: on its own thread.
    ReadySockets::Post(context, [self = std::move(self), answer = std::move(answer)] {
      if (self->then_ != nullptr) {
        self->Proved(answer);
      }
    });
  };
  const Status queued = work_->Put(std::string(startup_.Find("user")), std::move(prove));
  if (!queued.ok()) {
    End({queued, ""});
  }
}

void BackendConnection::Proved(const Result<std::string>& answer) {
  if (!answer.ok()) {
    End({answer.status(), ""});
    return;
  }
  Send(*answer);
  WaitToRead();
}

// These messages fit into a socket's buffer, even with TLS's overhead.
void BackendConnection::Send(std::string_view bytes) {
  if (!bytes.empty() && !channel_->Write(bytes)) {
    CannotConnect(WhyClosed());
  } else if (channel_->unsent() > 0) {
    WaitToSend();
  }
}

void BackendConnection::WaitToSend() {
  channel_->WaitSent([self = shared_from_this()](bool ok) {
    if (!ok && self->then_ != nullptr) {
      self->CannotConnect("the server closed the connection");
    }
  });
}

std::string BackendConnection::WhyClosed() const {
  const bool checks =
      channel_->tls() && (SSL_get_verify_mode(channel_->ssl()) & SSL_VERIFY_PEER) != 0;
  const long checked = checks ? SSL_get_verify_result(channel_->ssl()) : X509_V_OK;
  return checked == X509_V_OK ? "the server closed the connection"
                              : fmt::format("its certificate is refused: {}",
                                            X509_verify_cert_error_string(checked));
}

void BackendConnection::CannotConnect(std::string_view why) {
  End({Status(Code::kUnavailable, fmt::format("cannot connect to PostgreSQL at {}:{}: {}",
                                              upstream_.host, upstream_.port, why))
           .SqlState("08001"),
       ""});
}

void BackendConnection::End(Outcome outcome) {
  if (const Then then = std::exchange(then_, nullptr)) {
    then(std::move(outcome));
  }
  Close();
}

void BackendConnection::Close() {
  then_ = nullptr;
  resolver_.cancel();
  if (channel_ != nullptr) {
    channel_->Close();
  }
}

}  // namespace sluice::server::pgwire
