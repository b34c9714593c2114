#include "elastic/transport/connection.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "elastic/transport/shared_rings_internal.h"
#include "elastic/transport/tls_wire_internal.h"

namespace sluice::elastic {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

TlsWire& WireOf(BIO* bio) {
  return *static_cast<TlsWire*>(BIO_get_data(bio));
}

int WriteBio(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  errno = EAGAIN;
  const int sent = WireOf(bio).Write(bytes, count);
  if (sent < 0 && MayTryAgain()) {
    BIO_set_retry_write(bio);
  }
  return sent;
}

int ReadBio(BIO* bio, char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const ssize_t got = WireOf(bio).Read(bytes, count);
  if (got < 0 && MayTryAgain()) {
    BIO_set_retry_read(bio);
  }
  return static_cast<int>(got);
}

long ControlBio(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

BIO_METHOD* SocketMethod() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, WriteBio);
    BIO_meth_set_read(made, ReadBio);
    BIO_meth_set_ctrl(made, ControlBio);
    return made;
  }();
  return method;
}

std::string LastError() {
  char text[256] = "no reason";
  const unsigned long error = ERR_get_error();
  if (error != 0) {
    ERR_error_string_n(error, text, sizeof(text));
  }
  ERR_clear_error();
  return text;
}

// As strong as the key pair's curve (128 bits), and the fastest.
constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256";
constexpr size_t kReadBytes = 256 << 10;

class Context final : public Encryption {
 public:
  Context() : context_(SSL_CTX_new(TLS_method())) {}
  ~Context() override { SSL_CTX_free(context_); }
  SSL_CTX* get() const { return context_; }

  // Both ends present the same certificate, which both trust.
  bool Use(const JobKey& key) {
    BIO* const certificate_text =
        BIO_new_mem_buf(key.certificate.data(), static_cast<int>(key.certificate.size()));
    BIO* const key_text =
        BIO_new_mem_buf(key.private_key.data(), static_cast<int>(key.private_key.size()));
    X509* const certificate = PEM_read_bio_X509(certificate_text, nullptr, nullptr, nullptr);
    EVP_PKEY* const pair = PEM_read_bio_PrivateKey(key_text, nullptr, nullptr, nullptr);
    const bool used = context_ != nullptr && certificate != nullptr && pair != nullptr &&
                      SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION) == 1 &&
                      SSL_CTX_use_certificate(context_, certificate) == 1 &&
                      SSL_CTX_use_PrivateKey(context_, pair) == 1 &&
                      SSL_CTX_check_private_key(context_) == 1 &&
                      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_), certificate) == 1 &&
                      SSL_CTX_set_num_tickets(context_, 0) == 1 &&  // sessions are not resumed
                      SSL_CTX_set_ciphersuites(context_, kCiphers) == 1;
    EVP_PKEY_free(pair);
    X509_free(certificate);
    BIO_free(key_text);
    BIO_free(certificate_text);
    if (used) {
      SSL_CTX_set_verify(context_, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      // Several records at a time from the system.
      SSL_CTX_set_read_ahead(context_, 1);
      SSL_CTX_set_default_read_buffer_len(context_, kReadBytes);
      SSL_CTX_set_mode(context_,
                       SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    }
    return used;
  }

 private:
  SSL_CTX* const context_;
};

// 0: wait for the socket; -1: over.
ptrdiff_t Outcome(SSL* session, int answer) {
  const int error = SSL_get_error(session, answer);
  ERR_clear_error();
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

}  // namespace

struct Connection::Session {
  Session(SSL* made, int descriptor) : ssl(made), wire(descriptor) {}
  ~Session() { SSL_free(ssl); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ptrdiff_t Send(std::span<const std::byte> bytes);

  SSL* const ssl;
  TlsWire wire;
  // Bytes that the caller has been told found no room, and whose record waits in `wire`.
  ptrdiff_t held = 0;
};

ptrdiff_t Connection::Session::Send(std::span<const std::byte> bytes) {
  if (!wire.Flush()) {
    return -1;
  }
  if (!wire.empty()) {
    return 0;
  }
  if (held > 0) {
    return std::exchange(held, 0);
  }
  ptrdiff_t taken = 0, last = 0;
  while (static_cast<size_t>(taken) < bytes.size()) {
    const std::span<const std::byte> rest = bytes.subspan(static_cast<size_t>(taken));
    const int count = static_cast<int>(std::min<size_t>(rest.size(), INT_MAX));
    const int sent = SSL_write(ssl, rest.data(), count);
    if (sent <= 0) {
      if (Outcome(ssl, sent) < 0) {
        return -1;
      }
      break;
    }
    last = sent;
    taken += last;
  }
  if (!wire.Flush()) {
    return -1;
  }
  if (!wire.empty() && taken > 0) {
    held = last;
    return taken - last;
  }
  return taken;
}

Result<std::shared_ptr<const Encryption>> Encryption::Make(const JobKey& key) {
  if (!key.encrypts()) {
    return std::shared_ptr<const Encryption>();
  }
  auto context = std::make_shared<Context>();
  if (!context->Use(key)) {
    return Internal("the job's key pair is damaged").Detail(LastError());
  }
  return std::shared_ptr<const Encryption>(std::move(context));
}

Connection::Connection() = default;
Connection::~Connection() = default;
Connection::Connection(Connection&& other) noexcept = default;

Connection& Connection::operator=(Connection&& other) noexcept {
  session_ = std::move(other.session_);
  rings_ = std::move(other.rings_);
  socket_ = std::move(other.socket_);
  return *this;
}

Result<Connection> Connection::Open(Socket socket, const Encryption* encryption, bool accepted,
                                    SteadyTime until) {
  Connection connection;
  connection.socket_ = std::move(socket);
  if (encryption == nullptr) {
    return connection;
  }
  const int descriptor = connection.descriptor();
  SSL* const ssl = SSL_new(dynamic_cast<const Context&>(*encryption).get());
  connection.session_ = std::make_unique<Session>(ssl, descriptor);
  BIO* const bio = BIO_new(SocketMethod());
  if (ssl == nullptr || bio == nullptr) {
    BIO_free(bio);
    return Internal("TLS cannot be set up").Detail(LastError());
  }
  BIO_set_data(bio, &connection.session_->wire);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  // An outgoing connection may still be in progress.
  if (!accepted && !WaitFor(descriptor, POLLOUT, until)) {
    return Unavailable("there was no answer in time");
  }
  for (;;) {
    const int answer = accepted ? SSL_accept(ssl) : SSL_connect(ssl);
    if (answer == 1) {
      connection.session_->wire.Collect();
      return connection;
    }
    const int error = SSL_get_error(ssl, answer);
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
      return Unavailable("the other end does not have the job's key").Detail(LastError());
    }
    if (!WaitFor(descriptor, error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT, until)) {
      return Unavailable("there was no answer in time");
    }
  }
}

void Connection::UseMemory(SharedRings rings) {
  rings_ = std::make_unique<SharedRings>(std::move(rings));
}

short Connection::room_event() const {
  return rings_ != nullptr ? POLLIN : POLLOUT;
}

ptrdiff_t Connection::Send(std::span<const iovec> pieces) {
  if (rings_ != nullptr) {
    return rings_->Send(socket_,
                        {static_cast<const std::byte*>(pieces[0].iov_base), pieces[0].iov_len});
  }
  if (session_ == nullptr) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(pieces.data());
    message.msg_iovlen = pieces.size();
    const ssize_t sent = sendmsg(descriptor(), &message, MSG_NOSIGNAL);
    return sent < 0 && MayTryAgain() ? 0 : sent;
  }
  return session_->Send({static_cast<const std::byte*>(pieces[0].iov_base), pieces[0].iov_len});
}

ptrdiff_t Connection::Receive(std::span<std::byte> room) {
  if (rings_ != nullptr) {
    return rings_->Receive(socket_, room);
  }
  if (session_ == nullptr) {
    const ssize_t got = recv(descriptor(), room.data(), room.size(), 0);
    return got > 0 ? got : got < 0 && MayTryAgain() ? 0 : -1;
  }
  const int count = static_cast<int>(std::min<size_t>(room.size(), INT_MAX));
  const int got = SSL_read(session_->ssl, room.data(), count);
  return got > 0 ? got : Outcome(session_->ssl, got);
}

bool Connection::holds_more() const {
  return session_ != nullptr && SSL_has_pending(session_->ssl) == 1;
}

}  // namespace sluice::elastic
