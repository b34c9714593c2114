#include "tests/k8s/service_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/check.h"

namespace sluice::k8s {
namespace {

sockaddr_in AddressOf(const std::string& host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<in_port_t>(port));
  SLUICE_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, "no IPv4 address");
  return address;
}

void SendAtOnce(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool Pass(int from, int to) {
  std::array<char, 65536> bytes{};
  const ssize_t count = recv(from, bytes.data(), bytes.size(), 0);
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t part =
        send(to, bytes.data() + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (part <= 0) {
      return false;
    }
    sent += part;
  }
  return count > 0;
}

}  // namespace

ServiceProxy::ServiceProxy(const std::string& address, int port,
                           std::function<std::string()> target)
    : port_(port),
      target_(std::move(target)),
      listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in at = AddressOf(address, port);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  SLUICE_CHECK(bind(listener_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0 &&
                   listen(listener_, 128) == 0,
               "a Service has no address");
  accepting_ = std::jthread([this] { Accept(); });
}

ServiceProxy::~ServiceProxy() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const Pair& pair : pairs_) {
      shutdown(pair.client, SHUT_RDWR);
      shutdown(pair.pod, SHUT_RDWR);
    }
  }
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  for (Pair& pair : pairs_) {
    pair.thread.join();
    close(pair.client);
    close(pair.pod);
  }
  close(listener_);
}

void ServiceProxy::Accept() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::string host = client < 0 ? "" : target_();
    const int pod = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool connected = !host.empty() && [&] {
      const sockaddr_in at = AddressOf(host, port_);
      return connect(pod, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
    }();
    const std::lock_guard lock(mutex_);
    if (!connected || stopping_) {
      close(pod);
      if (client >= 0) {
        close(client);
      }
      if (client < 0 || stopping_) {
        return;
      }
      continue;
    }
    SendAtOnce(client);
    SendAtOnce(pod);
    Pair& pair = pairs_.emplace_back();
    pair.client = client;
    pair.pod = pod;
    pair.thread = std::jthread([this, client, pod] { Carry(client, pod); });
  }
}

void ServiceProxy::Carry(int client, int pod) {
  for (;;) {
    std::array<pollfd, 2> ends{{{client, POLLIN, 0}, {pod, POLLIN, 0}}};
    if (poll(ends.data(), ends.size(), -1) < 0) {
      continue;
    }
    if ((ends[0].revents != 0 && !Pass(client, pod)) ||
        (ends[1].revents != 0 && !Pass(pod, client))) {
      break;
    }
  }
  shutdown(client, SHUT_RDWR);
  shutdown(pod, SHUT_RDWR);
}

}  // namespace sluice::k8s
