#include "server/pgwire/listener_internal.h"

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/client_address.h"
#include "server/pgwire/ready_sockets_internal.h"

namespace sluice::server::pgwire {
namespace {

using boost::asio::generic::stream_protocol;
using boost::asio::ip::tcp;

// Connected clients that are not accepted yet.
constexpr int kBacklog = 1024;
// Pause after an accept that failed (no descriptors left), to avoid spinning.
constexpr std::chrono::milliseconds kAcceptPause(100);

Status CannotListen(const std::string& address, std::string_view why) {
  return Unavailable(fmt::format("cannot listen on {}: {}", address, why))
      .Hint("is the port taken?");
}

// Whether a socket file was left behind by a process that has ended.
bool NobodyListens(const std::string& file) {
  sockaddr_un address = {};
  if (file.size() >= sizeof(address.sun_path)) {
    return false;
  }
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, file.c_str(), file.size() + 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const bool refused =
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED;
  close(descriptor);
  return refused;
}

}  // namespace

// Outlives the listener while an accept is pending.
struct Listener::State : std::enable_shared_from_this<Listener::State> {
  State(boost::asio::io_context& context, Accepted then)
      : acceptor(context), pause(context), accepted(std::move(then)) {}

  void Accept() {
    acceptor.async_accept([self = shared_from_this()](const boost::system::error_code& error,
                                                      stream_protocol::socket socket) {
      if (!self->acceptor.is_open()) {
        return;
      }
      if (!error) {
        self->Take(std::move(socket));
        self->Accept();
        return;
      }
      self->pause.expires_after(kAcceptPause);
      self->pause.async_wait([self](const boost::system::error_code& ended) {
        if (!ended) {
          self->Accept();
        }
      });
    });
  }

  void Take(stream_protocol::socket socket) const {
    boost::system::error_code ignored;
    Client client;
    client.local = local;
    client.address = "[local]";
    if (!local) {
      socket.set_option(tcp::no_delay(true), ignored);
      NoticeVanishedPeer(socket.native_handle());
      const stream_protocol::endpoint peer = socket.remote_endpoint(ignored);
      tcp::endpoint address;
      address.resize(peer.size());
      std::memcpy(address.data(), peer.data(), peer.size());
      client.address = PlainAddress(address.address().to_string(ignored));
      client.local = boost::asio::ip::make_address(client.address, ignored).is_loopback();
    }
    client.descriptor = socket.release(ignored);
    accepted(std::move(client));
  }

  boost::asio::basic_socket_acceptor<stream_protocol> acceptor;
  boost::asio::steady_timer pause;
  const Accepted accepted;
  bool local = false;  // a Unix socket
};

Listener::Listener(std::shared_ptr<State> state, std::string address, std::string file)
    : state_(std::move(state)), address_(std::move(address)), file_(std::move(file)) {}

Listener::~Listener() {
  boost::system::error_code ignored;
  state_->acceptor.close(ignored);
  state_->pause.cancel();
  if (!file_.empty()) {
    unlink(file_.c_str());
  }
}

Result<std::unique_ptr<Listener>> Listener::Open(boost::asio::io_context& context,
                                                 const std::string& address, Accepted accepted) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) {
    return InvalidArgument(fmt::format("pg must be HOST:PORT or /FOLDER:PORT, not '{}'", address));
  }
  std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  const bool local = host.starts_with('/');
  auto state = std::make_shared<State>(context, std::move(accepted));
  state->local = local;
  std::string file;
  stream_protocol::endpoint endpoint;
  if (local) {
    file = fmt::format("{}/.s.PGSQL.{}", host, port);
    if (file.size() >= sizeof(sockaddr_un::sun_path)) {
      return CannotListen(address, "the folder's name is too long for a Unix socket");
    }
    if (NobodyListens(file)) {
      unlink(file.c_str());
    }
    endpoint = boost::asio::local::stream_protocol::endpoint(file);
  } else {
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
      host = host.substr(1, host.size() - 2);
    }
    boost::system::error_code error;
    tcp::resolver resolver(context);
    const auto found = resolver.resolve(host, port, tcp::resolver::passive, error);
    if (error || found.empty()) {
      return CannotListen(address, error.message());
    }
    endpoint = found.begin()->endpoint();
  }
  boost::system::error_code error;
  state->acceptor.open(endpoint.protocol(), error);
  if (!error && !local) {
    state->acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  }
  if (!error) {
    state->acceptor.bind(endpoint, error);
  }
  if (!error) {
    state->acceptor.listen(kBacklog, error);
  }
  if (error) {
    return CannotListen(address, error.message());
  }
  std::string taken = address;
  if (local) {
    constexpr mode_t kEverybody = 0777;  // every client has to log in
    chmod(file.c_str(), kEverybody);
  } else {
    const stream_protocol::endpoint own = state->acceptor.local_endpoint(error);
    tcp::endpoint with_port;
    with_port.resize(own.size());
    std::memcpy(with_port.data(), own.data(), own.size());
    taken = fmt::format("{}:{}", address.substr(0, colon), with_port.port());
  }
  ReadySockets::WakeBy(context, state->acceptor.native_handle());
  state->Accept();
  return std::unique_ptr<Listener>(new Listener(state, taken, file));
}

}  // namespace sluice::server::pgwire
