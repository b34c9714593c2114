#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {

// Answers in place of a PostgreSQL server: each time that a client says something, the next of
// `says`, to one client after the other.
class Stranger {
 public:
  explicit Stranger(std::vector<std::string> says) : says_(std::move(says)) {
    socklen_t size = sizeof(address_);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener_, Address(), size) != 0 || listen(listener_, SOMAXCONN) != 0 ||
        getsockname(listener_, Address(), &size) != 0) {
      std::abort();
    }
    thread_ = std::jthread([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        if (IsReadable(listener_)) {
          Serve(stop);
        }
      }
    });
  }
  ~Stranger() {
    thread_ = {};
    close(listener_);
  }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  int port() const { return ntohs(address_.sin_port); }
  // How many clients have come, and how many have left again.
  int came() const { return came_; }
  int left() const { return left_; }

 private:
  sockaddr* Address() { return reinterpret_cast<sockaddr*>(&address_); }
  static bool IsReadable(int socket) {
    constexpr int kLook = 20;
    pollfd wanted = {socket, POLLIN, 0};
    return poll(&wanted, 1, kLook) > 0;
  }
  void Serve(const std::stop_token& stop) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    ++came_;
    size_t next = 0;
    while (!stop.stop_requested()) {
      char heard[4096];
      if (!IsReadable(client)) {
        continue;
      }
      if (recv(client, heard, sizeof(heard), 0) <= 0) {
        ++left_;
        break;
      }
      const std::string& answer = next < says_.size() ? says_[next++] : std::string();
      send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    close(client);
  }

  const std::vector<std::string> says_;
  sockaddr_in address_ = {};
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::atomic<int> came_ = 0;
  std::atomic<int> left_ = 0;
  std::jthread thread_;
};

}  // namespace sluice
