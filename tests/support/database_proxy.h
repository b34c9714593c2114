#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::testing {

// A proxy between clients and a database server on this machine that can be unplugged: all
// connections break and no new ones are accepted, as when the server restarts.
class DatabaseProxy {
 public:
  explicit DatabaseProxy(int server_port) : server_port_(server_port) {
    Open();
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  ~DatabaseProxy() {
    thread_.request_stop();
    thread_.join();
    Cut();
  }
  int port() const { return port_; }
  // From now on no client is let through.
  void Cut() {
    const std::lock_guard lock(mutex_);
    if (listener_ >= 0) {
      close(std::exchange(listener_, -1));
    }
    CloseAll();
  }
  // From now on nothing passes, without any notice: the server's host is gone.
  void Freeze() { thread_.request_stop(); }
  // From now on, the first connection that brings its client this many more bytes brings nothing
  // further: its backend hangs.
  void FreezeAReader(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    freeze_after_ = bytes;
    for (Connection& connection : connections_) {
      connection.forwarded = 0;
    }
  }
  bool has_frozen_reader() {
    const std::lock_guard lock(mutex_);
    return std::any_of(connections_.begin(), connections_.end(),
                       [](const Connection& connection) { return connection.frozen; });
  }
  void Restore() {
    const std::lock_guard lock(mutex_);
    Open();
  }
  // Whether requests to cancel a statement wait here instead of reaching the server.
  void HoldCancels(bool hold) {
    const std::lock_guard lock(mutex_);
    hold_cancels_ = hold;
  }
  // Number of connections with a request to cancel that waits here.
  int64_t held_cancels() {
    const std::lock_guard lock(mutex_);
    return std::count_if(connections_.begin(), connections_.end(),
                         [](const Connection& connection) { return connection.held; });
  }

 private:
  struct Connection {
    int client, server;
    int64_t forwarded = 0;  // to the client
    bool frozen = false;
    bool held = false;  // a request to cancel, not passed on yet
  };
  static sockaddr_in Local(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }
  static const sockaddr* Any(const sockaddr_in& address) {
    return reinterpret_cast<const sockaddr*>(&address);  // NOLINT: as POSIX wants it
  }
  void Open() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int yes = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_in address = Local(port_);
    // The socket before it is open as long as Run waits for it.
    int bound = bind(listener_, Any(address), sizeof address);
    for (int i = 0; i < 10'000 && bound != 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      bound = bind(listener_, Any(address), sizeof address);
    }
    if (bound != 0 || listen(listener_, SOMAXCONN) != 0) {
      std::abort();
    }
    socklen_t size = sizeof address;
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);  // NOLINT: as above
    port_ = ntohs(address.sin_port);
  }
  void CloseAll() {
    for (const Connection& connection : connections_) {
      close(connection.client);
      close(connection.server);
    }
    connections_.clear();
  }
  // Number of bytes moved; none: one of the two ends is closed.
  static int64_t Move(int from, int to) {
    char buffer[65536];
    const ssize_t got = std::max<ssize_t>(recv(from, buffer, sizeof buffer, 0), 0);
    ssize_t sent = 0;
    while (sent < got) {
      const ssize_t put = send(to, buffer + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
      if (put <= 0) {
        return 0;
      }
      sent += put;
    }
    return got;
  }
  void Accept() {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      return;
    }
    const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Local(server_port_);
    if (connect(server, Any(address), sizeof address) != 0) {
      close(client);
      close(server);
      return;
    }
    connections_.push_back({client, server});
  }
  static bool IsCancel(int client) {
    constexpr char kRequest[] = {0, 0, 0, 16, 4, char(0xd2), 22, 46};  // its length and its code
    char bytes[sizeof kRequest];
    return recv(client, bytes, sizeof bytes, MSG_PEEK) == sizeof bytes &&
           std::equal(std::begin(bytes), std::end(bytes), std::begin(kRequest));
  }
  // False: one of the two ends is closed.
  bool Serve(Connection& connection, bool client_says, bool server_says) {
    connection.held = hold_cancels_ && client_says && IsCancel(connection.client);
    if (connection.held) {
      return true;
    }
    if (client_says && Move(connection.client, connection.server) == 0) {
      return false;
    }
    if (!server_says) {
      return true;
    }
    const int64_t forwarded = Move(connection.server, connection.client);
    connection.forwarded += forwarded;
    if (freeze_after_ > 0 && connection.forwarded >= freeze_after_) {
      connection.frozen = true;
      freeze_after_ = 0;
    }
    return forwarded > 0;
  }
  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      std::vector<pollfd> wanted;
      {
        const std::lock_guard lock(mutex_);
        wanted.push_back({listener_, POLLIN, 0});
        for (const Connection& connection : connections_) {
          wanted.push_back({connection.frozen ? -1 : connection.client, POLLIN, 0});
          wanted.push_back({connection.frozen ? -1 : connection.server, POLLIN, 0});
        }
      }
      constexpr int kLook = 20;
      poll(wanted.data(), wanted.size(), kLook);
      const std::lock_guard lock(mutex_);
      // Ends that were closed meanwhile are skipped: the connections are the earlier ones, or gone.
      for (size_t i = 0; 2 * i + 2 < wanted.size() && i < connections_.size(); ++i) {
        Connection& connection = connections_[i];
        if (connection.frozen) {
          continue;
        }
        if (connection.client != wanted[2 * i + 1].fd) {
          break;
        }
        if (!Serve(connection, wanted[2 * i + 1].revents != 0, wanted[2 * i + 2].revents != 0)) {
          close(connection.client);
          close(connection.server);
          connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
          break;  // the indexes have changed
        }
      }
      if (wanted[0].revents != 0 && listener_ == wanted[0].fd) {
        Accept();
      }
    }
  }

  const int server_port_;
  int port_ = 0;  // the same after Restore
  std::mutex mutex_;
  int listener_ = -1;
  std::vector<Connection> connections_;
  bool hold_cancels_ = false;
  int64_t freeze_after_ = 0;  // 0: no connection is to be frozen
  std::jthread thread_;
};

}  // namespace sluice::testing
