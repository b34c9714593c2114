#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "server/pgwire/certificate.h"
#include "server/pgwire/channel_internal.h"

namespace sluice::server::pgwire {

namespace {

// As much as a server sends at a time; after a shorter read there is usually nothing left.
constexpr ssize_t kShortRead = ssize_t{8} << 10;

}  // namespace

void NoticeVanishedPeer(int descriptor) {
  constexpr int kOn = 1;
  constexpr int kIdleSeconds = 60;
  constexpr int kIntervalSeconds = 10;
  constexpr int kProbes = 6;
  // A socket without an option keeps the system's own patience.
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &kOn, sizeof(kOn));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof(kIdleSeconds));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &kIntervalSeconds, sizeof(kIntervalSeconds));
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof(kProbes));
}

Channel::Channel(boost::asio::io_context& context, int descriptor) : socket_(context, descriptor) {}

Channel::~Channel() = default;

void Channel::StartTls(SSL_CTX* context, bool server, const std::string& host) {
  ssl_.reset(SSL_new(context));
  SSL_set_fd(ssl_.get(), native_handle());
  SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                               SSL_MODE_RELEASE_BUFFERS);
  SSL_set_msg_callback(ssl_.get(), CountRecord);
  SSL_set_msg_callback_arg(ssl_.get(), this);
  if (server) {
    SSL_set_accept_state(ssl_.get());
    return;
  }
  SSL_set_connect_state(ssl_.get());
  if (!host.empty()) {
    std::string name = host;  // the macro SSL_set_tlsext_host_name casts in C's way
    SSL_ctrl(ssl_.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    SSL_set1_host(ssl_.get(), host.c_str());
  }
}

// SSL_read works on through records that hold nothing for the reader, such as those that change
// keys, for as long as they come, so that a peer could hold up the thread with them. None needs
// many: what comes after so many counts as the end of the stream.
void Channel::CountRecord(int written, int /*version*/, int type, const void* /*bytes*/,
                          size_t /*size*/, SSL* ssl, void* channel) {
  constexpr int kMostRecords = 64;
  if (written == 0 && type == SSL3_RT_HEADER &&
      ++static_cast<Channel*>(channel)->records_ > kMostRecords) {
    SSL_set_shutdown(ssl, SSL_get_shutdown(ssl) | SSL_RECEIVED_SHUTDOWN);
  }
}

void Channel::LendHandshake() {
  handshake_lent_ = true;
  socket_.Drained();  // the handshake reads all that is there now; what comes later is reported
}

bool Channel::AdvanceHandshake() {
  ERR_clear_error();
  const int done = SSL_do_handshake(ssl_.get());
  const int error = SSL_get_error(ssl_.get(), done);
  return done == 1 || error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

void Channel::ReturnHandshake() {
  handshake_lent_ = false;
  if (close_when_returned_) {
    Close();
  } else if (!in_handshake()) {
    socket_.Undrained();  // the first message may have come with the handshake's last
  }
}

ssize_t Channel::Read(char* bytes, size_t size) {
  if (ssl_ == nullptr) {
    const ssize_t got = recv(native_handle(), bytes, size, 0);
    drained_ = got < std::min(static_cast<ssize_t>(size), kShortRead);
    if (got < static_cast<ssize_t>(size) && (got >= 0 || errno == EAGAIN)) {
      socket_.Drained();
    }
    if (got > 0) {
      return got;
    }
    return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
  }
  ERR_clear_error();
  const int got = SSL_read(ssl_.get(), bytes, static_cast<int>(size));
  if (got > 0) {
    records_ = 0;
    return got;
  }
  const int error = SSL_get_error(ssl_.get(), got);
  if (error == SSL_ERROR_WANT_READ) {
    socket_.Drained();
  }
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

ssize_t Channel::Send(std::string_view bytes) {
  if (ssl_ == nullptr) {
    const ssize_t sent = send(native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      return sent;
    }
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  }
  constexpr size_t kMost = size_t{1} << 20;
  ERR_clear_error();
  const int sent =
      SSL_write(ssl_.get(), bytes.data(), static_cast<int>(std::min(bytes.size(), kMost)));
  if (sent > 0) {
    return sent;
  }
  const int error = SSL_get_error(ssl_.get(), sent);
  waits_for_peer_ = error == SSL_ERROR_WANT_READ;
  if (waits_for_peer_) {
    socket_.Drained();
  }
  return waits_for_peer_ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

bool Channel::Write(std::string_view bytes) {
  while (unsent() == 0 && !bytes.empty()) {
    const ssize_t sent = Send(bytes);
    if (sent < 0) {
      return false;
    }
    if (sent == 0) {
      break;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  unsent_ += bytes;
  return true;
}

void Channel::WaitReadable(std::function<void(bool ok)> then) {
  if (ssl_ != nullptr && SSL_pending(ssl_.get()) > 0) {
    socket_.Undrained();
  }
  socket_.WaitReadable(std::move(then));
}

void Channel::WaitSent(std::function<void(bool ok)> then) {
  socket_.WaitWritable(
      [this, then = std::move(then)](bool ok) mutable {
        if (!ok) {
          then(false);
          return;
        }
        while (unsent() > 0) {
          const ssize_t sent = Send(std::string_view(unsent_).substr(sent_));
          if (sent < 0) {
            then(false);
            return;
          }
          if (sent == 0) {
            WaitSent(std::move(then));
            return;
          }
          sent_ += static_cast<size_t>(sent);
        }
        unsent_ = {};
        sent_ = 0;
        then(true);
      },
      waits_for_peer_);
}

bool Channel::PeerIsGone() {
  pollfd look = {native_handle(), POLLRDHUP, 0};
  return poll(&look, 1, 0) == 1;
}

void Channel::EndTls() {
  if (ssl_ != nullptr && !closed() && SSL_is_init_finished(ssl_.get()) != 0) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }
}

void Channel::EndWriting() {
  EndTls();
  shutdown(native_handle(), SHUT_WR);  // fails where the connection is broken, which a read tells
}

void Channel::Close() {
  if (handshake_lent_) {
    close_when_returned_ = true;
    return;
  }
  EndTls();
  socket_.Close();
}

std::optional<std::string> CertificateEndPoint(const X509* certificate) {
  if (certificate == nullptr) {
    return std::nullopt;
  }
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate, &der);
  if (size <= 0) {
    return std::nullopt;
  }
  const Result<std::string> hash = TlsServerEndPoint(std::string(der, der + size));
  OPENSSL_free(der);
  return hash.ok() ? std::optional(*hash) : std::nullopt;
}

}  // namespace sluice::server::pgwire
