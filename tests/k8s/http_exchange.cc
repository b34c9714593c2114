#include "tests/k8s/http_exchange.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>

namespace sluice::k8s {
namespace {

// Reads until the buffer has `size` bytes, or (0) the end of the headers.
bool Receive(int socket, std::string& buffer, size_t size) {
  std::array<char, 8192> part{};
  while (size > 0 ? buffer.size() < size : buffer.find("\r\n\r\n") == std::string::npos) {
    const ssize_t count = recv(socket, part.data(), part.size(), 0);
    if (count <= 0) {
      return false;
    }
    buffer.append(part.data(), static_cast<size_t>(count));
  }
  return true;
}

std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      int value = 0;
      std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
      decoded += static_cast<char>(value);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string HeaderOf(const std::string& head, std::string_view name) {
  for (const std::string& line : Split(head, '\n')) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos &&
        std::equal(line.begin(), line.begin() + static_cast<long>(colon), name.begin(), name.end(),
                   [](char a, char b) { return std::tolower(a) == std::tolower(b); })) {
      const size_t begin = line.find_first_not_of(' ', colon + 1);
      return begin == std::string::npos
                 ? ""
                 : line.substr(begin, line.find_last_not_of('\r') + 1 - begin);
    }
  }
  return "";
}

}  // namespace

std::optional<HttpRequest> ReceiveRequest(int socket, std::string& buffer) {
  if (!Receive(socket, buffer, 0)) {
    return std::nullopt;
  }
  const size_t end = buffer.find("\r\n\r\n") + 4;
  const std::string head = buffer.substr(0, end);
  const size_t length = static_cast<size_t>(std::atoll(HeaderOf(head, "content-length").c_str()));
  if (!Receive(socket, buffer, end + length)) {
    return std::nullopt;
  }
  HttpRequest request;
  request.body = buffer.substr(end, length);
  buffer.erase(0, end + length);
  const std::string authorization = HeaderOf(head, "authorization");
  request.token = authorization.substr(authorization.find(' ') + 1);
  const std::vector<std::string> line = Split(head.substr(0, head.find("\r\n")), ' ');
  request.method = line[0];
  const size_t question = std::min(line[1].find('?'), line[1].size());
  for (const std::string& each : Split(std::string_view(line[1]).substr(question), '&')) {
    const std::string term = each[0] == '?' ? each.substr(1) : each;
    const size_t equals = std::min(term.find('='), term.size() - 1);
    request.query[Decoded(term.substr(0, equals))] = Decoded(term.substr(equals + 1));
  }
  request.path = Split(line[1].substr(0, question), '/');
  return request;
}

bool SendBytes(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return false;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string HttpAnswer(int code, std::string_view body, std::string_view headers) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{}\r\n{}", code,
      body.size(), headers, body);
}

}  // namespace sluice::k8s
