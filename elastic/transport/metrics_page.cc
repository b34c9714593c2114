#include "elastic/transport/metrics_page.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "base/client_address.h"
#include "base/guarded.h"
#include "base/oldest_of_most.h"

namespace sluice::elastic {
namespace {

using ReaderClock = std::chrono::steady_clock;

// For the whole of a reader's request and answer.
constexpr auto kReaderWait = std::chrono::seconds(1);
// At a time, in all and of one address: a new one replaces the oldest of it, or of the address that
// has the most.
constexpr size_t kMaxReaders = 32;
constexpr ptrdiff_t kMaxOfAddress = 8;
constexpr size_t kMaxRequestBytes = 8 << 10;
constexpr int kReaderLookMs = 100;  // for those whose time is up

bool MayComeLater() {
  return errno == EAGAIN || errno == EINTR;
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
    {
      const MutexLock lock(self->mutex_);
      self->came_.push_back(std::move(reader));
    }
    self->Wake();
  });
  return page;
}

MetricsPage::MetricsPage(Pages pages)
    : pages_(std::move(pages)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

MetricsPage::~MetricsPage() {
  acceptor_.reset();
}

// Fails only if the counter is full, and then it is readable already.
void MetricsPage::Wake() const {
  static_cast<void>(eventfd_write(wake_.descriptor(), 1));
}

void MetricsPage::Run(const std::stop_token& stop) {
  const std::stop_callback ends(stop, [this] { Wake(); });
  std::list<Reader> readers;  // oldest first
  std::vector<pollfd> entries;
  while (!stop.stop_requested()) {
    TakeThoseWhoCame(readers);
    const auto now = ReaderClock::now();
    std::erase_if(readers, [&](Reader& reader) {
      bool stays = false;
      static_cast<void>(Guarded("a reader of the metrics", [&] {
        stays = reader.until > now && Serve(reader);
        return OkStatus();
      }));
      return !stays;
    });
    entries = {{wake_.descriptor(), POLLIN, 0}};
    for (const Reader& reader : readers) {
      entries.push_back({reader.socket.descriptor(),
                         static_cast<short>(reader.response.empty() ? POLLIN : POLLOUT), 0});
    }
    poll(entries.data(), entries.size(), readers.empty() ? -1 : kReaderLookMs);
  }
}

void MetricsPage::TakeThoseWhoCame(std::list<Reader>& readers) {
  eventfd_t woken = 0;
  static_cast<void>(eventfd_read(wake_.descriptor(), &woken));
  const MutexLock lock(mutex_);
  for (Socket& socket : came_) {
    std::string network = NetworkOf(AddressOfPeer(socket.descriptor()));
    const auto same = [&network](const Reader& one) { return one.network == network; };
    if (std::count_if(readers.begin(), readers.end(), same) == kMaxOfAddress) {
      readers.erase(std::find_if(readers.begin(), readers.end(), same));
    } else if (readers.size() == kMaxReaders) {
      readers.erase(OldestOfMost(readers, [](const Reader& one) { return one.network; }));
    }
    readers.push_back({std::move(socket), std::move(network), ReaderClock::now() + kReaderWait});
  }
  came_.clear();
}

// As far as is possible now; false: the reader is done.
bool MetricsPage::Serve(Reader& reader) const {
  const int descriptor = reader.socket.descriptor();
  char buffer[1024];
  while (reader.response.empty()) {
    const ssize_t got = recv(descriptor, buffer, sizeof(buffer), 0);
    if (got <= 0) {
      return got < 0 && MayComeLater();
    }
    reader.request.append(buffer, static_cast<size_t>(got));
    if (reader.request.size() > kMaxRequestBytes) {
      return false;
    }
    if (reader.request.find("\r\n\r\n") != std::string::npos) {
      reader.response = ResponseTo(reader.request, pages_);
    }
  }
  while (reader.sent < reader.response.size()) {
    const ssize_t more = send(descriptor, reader.response.data() + reader.sent,
                              reader.response.size() - reader.sent, MSG_NOSIGNAL);
    if (more <= 0) {
      return MayComeLater();
    }
    reader.sent += static_cast<size_t>(more);
  }
  return false;
}

}  // namespace sluice::elastic
