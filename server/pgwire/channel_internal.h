#pragma once

#include <openssl/ssl.h>

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "server/pgwire/byte_link_internal.h"
#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {

// The kernel notices within two minutes that the machine at the other end of a TCP connection is
// gone (by default only after two hours), also where nothing is being sent. A peer that is there,
// and reads nothing, is left alone.
void NoticeVanishedPeer(int descriptor);

// One connection of the door: a socket, with or without TLS. Nothing blocks; bytes that cannot be
// written now are kept and written when there is room. Belongs to the I/O thread.
class Channel final : public ByteLink {
 public:
  Channel(boost::asio::io_context& context, int descriptor);
  ~Channel() override;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  // From now on, bytes are sent and received through TLS. `server`: whether this is the server's
  // side.
  void StartTls(SSL_CTX* context, bool server, const std::string& host = "");
  bool tls() const { return ssl_ != nullptr; }
  SSL* ssl() const { return ssl_.get(); }

  // TLS's handshake costs the processor as much as hundreds of messages, so that it can be lent to
  // another thread, which takes it as far as the bytes that are there allow (false: it has failed).
  // Until it is returned only Close may be called, which takes effect then.
  bool in_handshake() const { return ssl_ != nullptr && SSL_is_init_finished(ssl_.get()) == 0; }
  void LendHandshake();
  bool AdvanceHandshake();
  void ReturnHandshake();

  // Reads what is there, at most `size` bytes. 0: nothing now. Negative: end of the stream, or an
  // error.
  ssize_t Read(char* bytes, size_t size) override;
  // The last Read returned little, so another one would probably return nothing.
  bool drained() const override { return drained_; }
  // Sends the bytes, or keeps those that there is no room for. False: the connection is broken.
  bool Write(std::string_view bytes) override;
  size_t unsent() const override { return unsent_.size() - sent_; }

  // `then` is called once, with false if the connection is broken. One wait at a time.
  void WaitReadable(std::function<void(bool ok)> then) override;
  // Waits until everything kept has been sent.
  void WaitSent(std::function<void(bool ok)> then) override;
  // Whether the peer has closed its end, even if unread bytes remain.
  bool PeerIsGone();
  void EndWriting() override;
  void Close() override;
  // What has just been passed on will probably be answered at once (ReadySockets).
  void ExpectAnswer() { socket_.ExpectAnswer(); }
  bool closed() const { return !socket_.is_open(); }
  int native_handle() const { return socket_.descriptor(); }

 private:
  struct SslFree {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  static void CountRecord(int written, int version, int type, const void* bytes, size_t size,
                          SSL* ssl, void* channel);
  void EndTls();
  // Sends from the front of `bytes`; returns how many were sent, or a negative number.
  ssize_t Send(std::string_view bytes);

  ReadySockets::Socket socket_;
  std::unique_ptr<SSL, SslFree> ssl_;
  int records_ = 0;  // of TLS, that have come since the last byte for the reader
  bool handshake_lent_ = false;
  bool close_when_returned_ = false;
  bool drained_ = false;
  std::string unsent_;
  size_t sent_ = 0;              // of unsent_
  bool waits_for_peer_ = false;  // TLS has to read before it can write
};

// SCRAM's channel binding over TLS (certificate.h, TlsServerEndPoint); nullopt: no
// certificate, or one that offers none.
std::optional<std::string> CertificateEndPoint(const X509* certificate);

}  // namespace sluice::server::pgwire
