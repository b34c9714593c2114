#include "tests/k8s/fake_api_server.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "base/check.h"
#include "tests/k8s/http_exchange.h"

namespace sluice::k8s {
namespace {

constexpr std::string_view kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

constexpr std::string_view kStreamEnd = "0\r\n\r\n";

}  // namespace

FakeApiServer::FakeApiServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const bound = reinterpret_cast<sockaddr*>(&address);
  SLUICE_CHECK(bind(listener_, bound, size) == 0 && listen(listener_, 64) == 0 &&
                   getsockname(listener_, bound, &size) == 0,
               "the fake API server has no port");
  port_ = ntohs(address.sin_port);
  accepting_ = std::jthread([this] { Accept(); });
}

FakeApiServer::~FakeApiServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const int socket : sockets_) {
      shutdown(socket, SHUT_RDWR);
    }
  }
  changed_.notify_all();
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  threads_.clear();
  for (const int socket : sockets_) {
    close(socket);
  }
  close(listener_);
}

std::string FakeApiServer::url() const {
  return fmt::format("http://127.0.0.1:{}", port_);
}

void FakeApiServer::Make(Trouble trouble, const std::string& verb, const std::string& resource,
                         int times) {
  const std::lock_guard lock(mutex_);
  planned_.push_back({trouble, verb, resource, times});
}

void FakeApiServer::Demand(const std::string& token) {
  const std::lock_guard lock(mutex_);
  token_ = token;
}

void FakeApiServer::Compact() {
  const std::lock_guard lock(mutex_);
  store_.Compact();
}

int64_t FakeApiServer::version() const {
  const std::lock_guard lock(mutex_);
  return store_.version();
}

void FakeApiServer::SendBookmarks() {
  const std::lock_guard lock(mutex_);
  ++bookmarks_;
  changed_.notify_all();
}

void FakeApiServer::SendEverythingAgain() {
  const std::lock_guard lock(mutex_);
  ++repeats_;
  changed_.notify_all();
}

void FakeApiServer::EndStreams() {
  const std::lock_guard lock(mutex_);
  ++ends_;
  changed_.notify_all();
}

void FakeApiServer::FallSilent() {
  const std::lock_guard lock(mutex_);
  silent_ = sockets_.size();
}

void FakeApiServer::CutStreams(size_t bytes) {
  const std::lock_guard lock(mutex_);
  part_ = bytes;
}

int FakeApiServer::Asked(const std::string& verb, const std::string& resource) const {
  const std::lock_guard lock(mutex_);
  const auto found = asked_.find({verb, resource});
  return found == asked_.end() ? 0 : static_cast<int>(found->second.size());
}

void FakeApiServer::WaitUntilAsked(const std::string& verb, const std::string& resource,
                                   int times) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    const auto found = asked_.find({verb, resource});
    return found != asked_.end() && static_cast<int>(found->second.size()) >= times;
  });
}

std::string FakeApiServer::Last(const std::string& verb, const std::string& resource,
                                const std::string& what) const {
  const std::lock_guard lock(mutex_);
  const Request& request = asked_.at({verb, resource}).back();
  if (what == "body") {
    return request.body;
  }
  const auto found = request.query.find(what);
  return found == request.query.end() ? "" : found->second;
}

void FakeApiServer::Accept() {
  while (true) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    const std::lock_guard lock(mutex_);
    if (socket < 0 || stopping_) {
      if (socket >= 0) {
        close(socket);
      }
      return;
    }
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] {
      Serve(socket);
      shutdown(socket, SHUT_RDWR);
    });
  }
}

void FakeApiServer::Serve(int socket) {
  std::string buffer;
  while (std::optional<HttpRequest> received = ReceiveRequest(socket, buffer)) {
    Request request;
    request.body = std::move(received->body);
    request.token = std::move(received->token);
    request.query = std::move(received->query);
    // /api/v1 or /apis/group/version, namespaces/x, resource, name, subresource
    std::vector<std::string>& path = received->path;
    path.erase(path.begin(), path.begin() + (path[0] == "api" ? 2 : 3));
    if (path.size() > 2 && path[0] == "namespaces") {
      request.key.namespace_name = path[1];
      path.erase(path.begin(), path.begin() + 2);
    }
    path.resize(3);
    request.key.resource = path[0];
    request.key.name = path[1];
    request.subresource = path[2];
    const std::map<std::string, std::string> verbs = {{"POST", "create"},
                                                      {"PUT", "update"},
                                                      {"PATCH", "patch"},
                                                      {"DELETE", "delete"},
                                                      {"GET", path[1].empty() ? "list" : "get"}};
    request.verb = request.query.contains("watch") ? "watch" : verbs.at(received->method);
    if (!Answer(socket, request)) {
      return;
    }
  }
}

// False: the connection cannot be used any more.
bool FakeApiServer::Answer(int socket, const Request& request) {
  std::optional<Trouble> trouble;
  std::string demanded;
  {
    const std::lock_guard lock(mutex_);
    asked_[{request.verb, request.key.resource}].push_back(request);
    changed_.notify_all();
    demanded = token_;
    const auto found = std::find_if(planned_.begin(), planned_.end(), [&](const Planned& each) {
      return each.times > 0 && each.verb == request.verb && each.resource == request.key.resource;
    });
    if (found != planned_.end()) {
      --found->times;
      trouble = found->trouble;
    }
    if (std::find(sockets_.begin(), sockets_.end(), socket) - sockets_.begin() <
        static_cast<std::ptrdiff_t>(silent_)) {
      trouble = Trouble::kSayNothing;
    }
  }
  if (!demanded.empty() && request.token == "powerless") {
    trouble = Trouble::kForbidden;
  } else if (!demanded.empty() && request.token != demanded) {
    trouble = Trouble::kUnauthorized;
  }
  const auto refuse = [socket](int code, std::string_view reason, const std::string& message,
                               std::string_view headers = "") {
    return SendBytes(socket,
                     HttpAnswer(code, FakeApiStore::StatusJson(code, reason, message), headers));
  };
  switch (trouble.value_or(Trouble::kGoneEvent)) {
    case Trouble::kTooManyRequests:
      return refuse(429, "TooManyRequests", "too many requests", "Retry-After: 7\r\n");
    case Trouble::kServerError:
      return refuse(500, "InternalError", "etcd has no leader");
    case Trouble::kForbidden:
      return refuse(403, "Forbidden",
                    fmt::format("{} is forbidden: User \"powerless\" cannot {} resource \"{}\"",
                                request.key.resource, request.verb, request.key.resource));
    case Trouble::kUnauthorized:
      return refuse(401, "Unauthorized", "Unauthorized");
    case Trouble::kGone:
      return refuse(410, "Expired", "too old resource version");
    case Trouble::kVersionTooLarge:
      return refuse(504, "Timeout", "Too large resource version: 9, current: 8");
    case Trouble::kLoseAnswer:
      Do(request);
      return false;
    case Trouble::kKeepAnswer:
      Do(request);
      WaitForEnd();
      return false;
    case Trouble::kCloseBefore:
      return false;
    case Trouble::kSayNothing:
      WaitForEnd();
      return false;
    case Trouble::kNoHttp:
      return SendBytes(socket, "SSH-2.0-OpenSSH_9.2\r\n") && false;
    case Trouble::kDamagedAnswer:
      return SendBytes(socket, HttpAnswer(200, R"({"metadata":{"name":"w","resourceVersion":)"));
    case Trouble::kStaleList:
      return SendBytes(socket,
                       HttpAnswer(200, R"({"metadata":{"resourceVersion":"3"},"items":[]})"));
    case Trouble::kEndlessAnswer: {
      const std::string part(1 << 16, ' ');
      bool open = SendBytes(socket, "HTTP/1.1 200 OK\r\n\r\n{");
      while (open) {
        open = SendBytes(socket, part);
      }
      return false;
    }
    default:
      break;
  }
  if (request.verb == "watch") {
    Stream(socket, request, trouble ? &*trouble : nullptr);
    return false;
  }
  const FakeApiStore::Answer answer = Do(request);
  return SendBytes(socket, HttpAnswer(answer.code, answer.body));
}

FakeApiStore::Answer FakeApiServer::Do(const Request& request) {
  const std::lock_guard lock(mutex_);
  FakeApiStore::Answer answer;
  if (request.verb == "create") {
    answer = request.subresource == "binding" ? store_.Bind(request.key, request.body)
                                              : store_.Create(request.key, request.body);
  } else if (request.verb == "get") {
    answer = store_.Get(request.key);
  } else if (request.verb == "list") {
    answer = store_.List(request.key, request.query);
  } else if (request.verb == "update") {
    answer = store_.Update(request.key, request.body);
  } else if (request.verb == "patch") {
    answer = store_.Patch(request.key, request.subresource, request.body);
  } else {
    answer = store_.Delete(request.key, request.body);
  }
  changed_.notify_all();
  return answer;
}

bool FakeApiServer::SendChunk(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, part_);
    if (!SendBytes(socket, fmt::format("{:x}\r\n{}\r\n", part.size(), part))) {
      return false;
    }
    bytes.remove_prefix(part.size());
  }
  return true;
}

void FakeApiServer::WaitForEnd() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopping_; });
}

void FakeApiServer::Stream(int socket, const Request& request, const Trouble* trouble) {
  const auto query = [&request](const std::string& name) {
    const auto found = request.query.find(name);
    return found == request.query.end() ? "" : found->second;
  };
  int64_t version = std::atoll(query("resourceVersion").c_str());
  const std::string gone = R"({"type":"ERROR","object":)" +
                           FakeApiStore::StatusJson(410, "Expired", "too old resource version") +
                           "}\n";
  if (!SendBytes(socket, kStreamHead)) {
    return;
  }
  std::unique_lock lock(mutex_);
  if (trouble != nullptr) {
    switch (*trouble) {
      case Trouble::kGoneEvent:
        SendChunk(socket, gone);
        SendBytes(socket, kStreamEnd);
        return;
      case Trouble::kErrorEvent:
        SendChunk(socket, R"({"type":"ERROR","object":)" +
                              FakeApiStore::StatusJson(500, "InternalError", "etcd is slow") + "}");
        SendBytes(socket, kStreamEnd);
        return;
      case Trouble::kBrokenStream:
        SendChunk(socket, R"({"type":"ADDED","object":{"metadata":{"na)");
        return;
      case Trouble::kDamagedEvent:
        SendChunk(socket, R"({"type":"ADDED","object":{}})");
        return;
      case Trouble::kEndedStream:
        SendBytes(socket, kStreamEnd);
        return;
      case Trouble::kSilentStream:
        changed_.wait(lock, [this] { return stopping_; });
        return;
      default:
        break;
    }
  }
  int bookmarks = bookmarks_, repeats = repeats_;
  const int ends = ends_;
  while (!stopping_) {
    if (repeats != repeats_) {
      repeats = repeats_;
      version = std::atoll(query("resourceVersion").c_str());
    }
    const auto frames = store_.EventsAfter(request.key, query("labelSelector"), version);
    if (!frames) {
      SendChunk(socket, gone);
      break;
    }
    for (const std::string& frame : *frames) {
      if (!SendChunk(socket, frame)) {
        return;
      }
    }
    if (bookmarks != bookmarks_) {
      bookmarks = bookmarks_;
      version = store_.version();
      SendChunk(socket, store_.Bookmark());
    }
    if (ends != ends_) {
      break;
    }
    const int64_t seen = store_.version();
    changed_.wait(lock, [&] {
      return stopping_ || ends != ends_ || bookmarks != bookmarks_ || repeats != repeats_ ||
             store_.version() != seen;
    });
  }
  SendBytes(socket, kStreamEnd);
}

}  // namespace sluice::k8s
