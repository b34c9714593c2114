#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// A client that sends bytes that no gRPC library would.
namespace sluice {

class RawConnection {
 public:
  // `address`: "127.0.0.1:PORT".
  explicit RawConnection(const std::string& address)
      : descriptor_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(descriptor_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      Close();
    }
  }
  RawConnection(RawConnection&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  RawConnection& operator=(RawConnection&&) = delete;
  ~RawConnection() { Close(); }

  bool open() const { return descriptor_ >= 0; }
  // False: the other side has closed it.
  bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Receives until the other side closes, or sends `until`, or is silent for `seconds`.
  std::string Receive(std::string_view until, int seconds) const {
    std::string all;
    char buffer[65536];
    pollfd entry{descriptor_, POLLIN, 0};
    while (all.find(until) == std::string::npos && poll(&entry, 1, seconds * 1000) > 0) {
      const ssize_t got = recv(descriptor_, buffer, sizeof buffer, 0);
      if (got <= 0) {
        break;
      }
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }
  // Whether the other side closes it within that time.
  bool ClosedWithin(int seconds) const {
    char byte = 0;
    pollfd entry{descriptor_, POLLIN, 0};
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
    while (std::chrono::steady_clock::now() < end) {
      if (poll(&entry, 1, 100) > 0 && recv(descriptor_, &byte, 1, MSG_DONTWAIT) <= 0) {
        return true;
      }
    }
    return false;
  }

 private:
  void Close() {
    if (descriptor_ >= 0) {
      close(std::exchange(descriptor_, -1));
    }
  }
  int descriptor_;
};

constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string Http2Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view body) {
  const auto size = static_cast<uint32_t>(body.size());
  std::string frame;
  for (const uint32_t byte : {size >> 16U, size >> 8U, size, uint32_t{type}, uint32_t{flags},
                              stream >> 24U, stream >> 16U, stream >> 8U, stream}) {
    frame += static_cast<char>(byte & 0xFFU);
  }
  return frame.append(body);
}

inline std::string Http2Settings() {
  return Http2Frame(4, 0, 0, "");
}

// Opens stream 1 with a gRPC call.
inline std::string Http2Call(const std::string& path,
                             const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::pair<std::string, std::string>> headers = {
      {":method", "POST"},         {":scheme", "http"}, {":path", path},
      {":authority", "localhost"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  headers.insert(headers.end(), more.begin(), more.end());
  std::string block;
  for (const auto& [name, value] : headers) {  // literals that are not indexed, without Huffman
    block += '\0';
    block += static_cast<char>(name.size());
    block += name;
    block += static_cast<char>(value.size());
    block += value;
  }
  return Http2Frame(1, 4, 1, block);
}

// A message with the given flag byte, in DATA frames that end stream 1.
inline std::string Http2Message(char flag, std::string_view message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string bytes(1, flag);
  for (const uint32_t byte : {size >> 24U, size >> 16U, size >> 8U, size}) {
    bytes += static_cast<char>(byte & 0xFFU);
  }
  bytes.append(message);
  constexpr size_t kFrame = 16384;
  std::string frames;
  for (size_t at = 0; at < bytes.size(); at += kFrame) {
    const bool last = at + kFrame >= bytes.size();
    frames += Http2Frame(0, last ? 1 : 0, 1, std::string_view(bytes).substr(at, kFrame));
  }
  return frames;
}

}  // namespace sluice
