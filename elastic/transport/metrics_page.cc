#include "elastic/transport/metrics_page.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/guarded.h"

namespace sluice::elastic {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

// The longest that a slow reader can delay the next one.
constexpr auto kReaderWait = std::chrono::seconds(1);
constexpr size_t kMaxReaders = 32;  // that wait; others are rejected
constexpr size_t kMaxRequestBytes = 8 << 10;

bool WaitUntil(const Socket& reader, short what, SteadyTime until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      until - std::chrono::steady_clock::now());
  pollfd entry{reader.descriptor(), what, 0};
  return left.count() > 0 && poll(&entry, 1, static_cast<int>(left.count())) > 0;
}

// The request up to the end of its headers; "": they do not end.
std::string ReadRequest(const Socket& reader, SteadyTime until) {
  std::string request;
  char buffer[1024];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(reader.descriptor(), buffer, sizeof(buffer), 0);
    if (got > 0) {
      request.append(buffer, static_cast<size_t>(got));
    }
    const bool waits = got < 0 && (errno == EAGAIN || errno == EINTR);
    if ((got <= 0 && !waits) || request.size() > kMaxRequestBytes ||
        (waits && !WaitUntil(reader, POLLIN, until))) {
      return "";
    }
  }
  return request;
}

std::string ResponseTo(const std::string& request, const MetricsPage::Pages& pages) {
  const std::string line = request.substr(0, request.find("\r\n"));
  const auto asks_for = [&line](std::string_view path) {
    const std::string_view rest = std::string_view(line).substr(std::min(line.size(), size_t{4}));
    return rest.starts_with(path) &&
           (rest.substr(path.size()).starts_with(' ') || rest.substr(path.size()).starts_with('?'));
  };
  const char* status = "200 OK";
  std::string body;
  if (!line.starts_with("GET ")) {
    status = "405 Method Not Allowed";
  } else if (asks_for("/metrics")) {
    body = pages.metrics();
  } else if (asks_for("/healthz")) {
    body = "ok\n";
  } else if (asks_for("/readyz")) {
    const Status ready = pages.ready ? pages.ready() : OkStatus();
    status = ready.ok() ? "200 OK" : "503 Service Unavailable";
    body = ready.ok() ? "ok\n" : "not ready\n";  // anybody may read it: the log says why
  } else {
    status = "404 Not Found";
  }
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

std::string Escaped(const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    escaped += c == '\n'               ? "\\n"
               : c == '"' || c == '\\' ? std::string("\\") + c
                                       : std::string(1, c);
  }
  return escaped;
}

}  // namespace

void MetricsText::Add(std::string_view name, Kind kind, std::string_view help, const Labels& labels,
                      double value) {
  if (name != last_name_) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                         kind == Kind::kCounter ? "counter" : "gauge");
    last_name_ = name;
  }
  text_ += name;
  for (size_t i = 0; i < labels.size(); ++i) {
    text_ += fmt::format("{}{}=\"{}\"{}", i == 0 ? "{" : ",", labels[i].first,
                         Escaped(labels[i].second), i + 1 == labels.size() ? "}" : "");
  }
  text_ += fmt::format(" {}\n", value);
}

void MetricsText::Add(std::string_view name, std::string_view help, const Histogram& histogram) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} histogram\n", name, help, name);
  for (size_t i = 0; i < histogram.bounds().size(); ++i) {
    text_ += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, histogram.bounds()[i],
                         histogram.counts()[i]);
  }
  text_ += fmt::format("{0}_bucket{{le=\"+Inf\"}} {1}\n{0}_sum {2}\n{0}_count {1}\n", name,
                       histogram.count(), histogram.sum());
  last_name_ = name;
}

Result<std::unique_ptr<MetricsPage>> MetricsPage::Start(const std::string& address, Pages pages) {
  std::unique_ptr<MetricsPage> page(new MetricsPage(std::move(pages)));
  MetricsPage* const self = page.get();
  ASSIGN_OR_RETURN(page->acceptor_, Acceptor::Listen(address));
  page->thread_ = std::jthread([self](const std::stop_token& stop) { self->Run(stop); });
  page->acceptor_->Start([self](Socket reader) {
    const MutexLock lock(self->mutex_);
    if (self->readers_.size() < kMaxReaders) {
      self->readers_.push_back(std::move(reader));
      self->came_.notify_all();
    }
  });
  return page;
}

MetricsPage::~MetricsPage() {
  acceptor_.reset();
}

void MetricsPage::Run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Socket reader;
    {
      MutexLock lock(mutex_);
      if (!came_.wait(lock.native(), stop,
                      [this]() NO_THREAD_SAFETY_ANALYSIS { return !readers_.empty(); })) {
        return;
      }
      reader = std::move(readers_.front());
      readers_.pop_front();
    }
    static_cast<void>(Guarded("a reader of the metrics", [&] {
      Answer(reader);
      return OkStatus();
    }));
  }
}

void MetricsPage::Answer(const Socket& reader) const {
  const SteadyTime until = std::chrono::steady_clock::now() + kReaderWait;
  const std::string request = ReadRequest(reader, until);
  if (request.empty()) {
    return;
  }
  const std::string response = ResponseTo(request, pages_);
  for (size_t sent = 0; sent < response.size();) {
    const ssize_t more =
        send(reader.descriptor(), response.data() + sent, response.size() - sent, MSG_NOSIGNAL);
    if (more > 0) {
      sent += static_cast<size_t>(more);
    } else if ((errno != EAGAIN && errno != EINTR) || !WaitUntil(reader, POLLOUT, until)) {
      return;
    }
  }
}

}  // namespace sluice::elastic
