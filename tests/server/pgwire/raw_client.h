#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "server/pgwire/messages.h"

namespace sluice {

// Sends raw bytes on a socket.
class RawClient {
 public:
  // `from`: its own address.
  explicit RawClient(const std::string& port, const char* from = "127.0.0.1")
      : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    inet_pton(AF_INET, from, &address.sin_addr);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << from;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(port)));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    const timeval patience = {20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~RawClient() { close(socket_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return;  // the door has closed it
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }
  // "": the end.
  std::string ReadSome() const {
    char buffer[4096];
    const ssize_t got = recv(socket_, buffer, sizeof(buffer), 0);
    return {buffer, got > 0 ? static_cast<size_t>(got) : 0};
  }
  // Reads until `part` has come, or the end.
  std::string ReadUntil(std::string_view part) const {
    std::string read;
    for (std::string some = " "; !some.empty() && read.find(part) == std::string::npos;) {
      some = ReadSome();
      read += some;
    }
    return read;
  }
  std::string ReadAll() const { return ReadUntil("\x01never\x02"); }
  void Begin(const std::string& database, const std::string& user = "postgres") const {
    std::string startup;
    server::pgwire::AppendStartup(
        startup, {server::pgwire::kProtocol3, {{"user", user}, {"database", database}}});
    Send(startup);
  }
  // What the door says then.
  std::string LogIn(const std::string& database) const {
    Begin(database);
    const std::string ready("Z\0\0\0\5I", 6);
    std::string greeting = ReadUntil(ready);
    EXPECT_NE(greeting.find(ready), std::string::npos) << greeting;
    return greeting;
  }

 private:
  const int socket_;
};

// A simple query.
inline std::string QueryMessage(std::string_view sql) {
  std::string message;
  server::pgwire::AppendQuery(message, sql);
  return message;
}

}  // namespace sluice
