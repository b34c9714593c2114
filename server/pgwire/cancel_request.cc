#include <sys/un.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "server/pgwire/cancel_request_internal.h"
#include "server/pgwire/messages.h"
#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {
namespace {

using boost::asio::ip::tcp;
using Stream = boost::asio::generic::stream_protocol;
using boost::system::error_code;

constexpr std::chrono::seconds kPatience{5};
constexpr size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

class CancelRequest : public std::enable_shared_from_this<CancelRequest> {
 public:
  CancelRequest(boost::asio::io_context& context, std::string bytes, std::function<void()> then)
      : bytes_(std::move(bytes)),
        then_(std::move(then)),
        resolver_(context),
        socket_(context),
        deadline_(context),
        awaited_(ReadySockets::AwaitAsio(context)) {}

  void Start(const Upstream& upstream) {
    deadline_.expires_after(kPatience);
    deadline_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) {
        self->End();
      }
    });
    if (!upstream.local_socket()) {
      resolver_.async_resolve(
          upstream.place(), upstream.port,
          [self = shared_from_this()](const error_code& error,
                                      const tcp::resolver::results_type& found) {
            if (error || found.empty()) {
              self->End();
            } else {
              self->Connect(Stream::endpoint(found.begin()->endpoint()));
            }
          });
      return;
    }
    const std::string path = upstream.SocketPath();
    if (path.size() > kMaxSocketPath) {
      End();
    } else {
      Connect(Stream::endpoint(boost::asio::local::stream_protocol::endpoint(path)));
    }
  }

 private:
  void Connect(const Stream::endpoint& server) {
    socket_.async_connect(server, [self = shared_from_this()](const error_code& error) {
      error ? self->End() : self->Send();
    });
  }

  void Send() {
    boost::asio::async_write(socket_, boost::asio::buffer(bytes_),
                             [self = shared_from_this()](const error_code& error, size_t /*sent*/) {
                               error ? self->End() : self->AwaitClose();
                             });
  }

  void AwaitClose() {
    boost::asio::async_read(
        socket_, boost::asio::buffer(answer_),
        [self = shared_from_this()](const error_code& /*closed*/, size_t /*got*/) { self->End(); });
  }

  void End() {
    const std::function<void()> then = std::exchange(then_, nullptr);
    if (then == nullptr) {
      return;
    }
    error_code ignored;
    deadline_.cancel();
    resolver_.cancel();
    socket_.close(ignored);
    awaited_.reset();
    then();
  }

  const std::string bytes_;
  std::array<char, 1> answer_{};  // the server sends none
  std::function<void()> then_;    // null: it has been called
  tcp::resolver resolver_;
  Stream::socket socket_;
  boost::asio::steady_timer deadline_;
  std::shared_ptr<void> awaited_;
};

}  // namespace

void CancelBackend(boost::asio::io_context& context, const Upstream& upstream, uint32_t process,
                   uint32_t key, std::function<void()> then) {
  std::string bytes;
  AppendCancelRequest(bytes, process, key);
  std::make_shared<CancelRequest>(context, std::move(bytes), std::move(then))->Start(upstream);
}

}  // namespace sluice::server::pgwire
